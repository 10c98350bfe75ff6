"""Everything with a baseline's name does what that baseline does."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from played import asked, reply, rows, run, said_in, schema_of, write
from servers import answering
from servers.openai_server import Behaviour, OpenAIServer, in_thread

from qrmem.cli import main
from qrmem.eval import preset_named
from qrmem.eval.preset import folder_of

Json = Any


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_decomposition_ends_with_what_was_asked(tmp_path: Path) -> None:
    """DECOM: a reference to an earlier answer stands nowhere in a prompt."""

    def parts(request: Mapping[str, Json]) -> str:
        if schema_of(request) == "decompose":
            return reply(questions=["Who founded the bell works?", "Where was #1 born?"])
        if schema_of(request) in {"answer", "judge"}:
            return reply(reasoning="so", action=-2, answer="Ada Holm", quotes=[])
        return answering.answer(request)

    text = "Ada Holm founded the bell works. Ada Holm was born in Corrin."
    question = "Where was the founder of the bell works born?"
    write(tmp_path, [{"_id": "d", "text": text}], [{"question": question, "answers": ["Corrin"]}])
    with in_thread(OpenAIServer(answer=parts)) as server:
        assert run(server, "plain", tmp_path, "--system", "decom") == 0
        last = asked(server, "answer")[-1]
    assert question in last
    assert "Where was Ada Holm born? Ada Holm" in last
    assert "#1" not in last


def test_memwalker_answers_from_the_nodes_on_the_way(tmp_path: Path) -> None:
    """A walk that the first triage ends has seen the root, and is forced from that."""

    def lost(request: Mapping[str, Json]) -> str:
        if schema_of(request) == "triage":
            return reply(reasoning="none of them", part=-1)
        if schema_of(request) == "summary-join":
            return reply(summary="The whole tale of the bell works.")
        return answering.answer(request)

    text = "Ada Holm founded the bell works of Corrin in the spring of 1832. " * 150
    write(tmp_path, [{"_id": "d", "text": text}], [{"question": "Who?", "answers": ["Ada Holm"]}])
    with in_thread(OpenAIServer(answer=lost)) as server:
        assert run(server, "plain", tmp_path, "--system", "memwalker") == 0
        (forced,) = asked(server, "answer")
        assert len(asked(server, "triage")) == 1
    assert "The whole tale of the bell works." in forced


TALE = [f"In the year {n} the {n}th boat left Corrin for the north." for n in range(1000, 1900)]


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (Behaviour(context=9000), ()),
        (Behaviour(context=9000), ("--model", "gpt-3.5-turbo")),
        (Behaviour(), ("--window", "9000")),
        (Behaviour(too_large=9000), ()),
    ],
    ids=["a server that names its context", "of another model", "a window", "a server"],
)
def test_the_full_text_is_cut_in_the_middle_to_what_the_model_takes(
    tmp_path: Path, behaviour: Behaviour, words: tuple[str, ...]
) -> None:
    """LongBench's rule: both ends stay, and what is sent is not sent again unchanged."""
    write(
        tmp_path, [{"_id": "d", "text": " ".join(TALE)}], [{"question": "When?", "answers": ["x"]}]
    )
    with in_thread(OpenAIServer(behaviour=behaviour)) as server:
        assert run(server, "plain", tmp_path, "--system", "full-text", *words) == 0
        sent = [p for p in map(said_in, server.stats.bodies) if "boat left" in p]
    assert len(set(sent)) == len(sent) <= 6
    assert TALE[0] in sent[-1]
    assert TALE[-1] in sent[-1]
    there = [sentence in sent[-1] for sentence in TALE]
    left_out = there.index(False), len(there) - there[::-1].index(False)
    assert 350 < sum(left_out) / 2 < 550, "the middle is what is missing"
    assert not any(there[slice(*left_out)])
    assert sum(there) > 300
    (row,) = rows()
    assert "error" not in row


def test_the_full_text_is_sent_whole_where_it_fits(tmp_path: Path) -> None:
    write(
        tmp_path, [{"_id": "d", "text": " ".join(TALE)}], [{"question": "When?", "answers": ["x"]}]
    )
    with in_thread(OpenAIServer()) as server:
        assert run(server, "plain", tmp_path, "--system", "full-text") == 0
        sent = [p for p in map(said_in, server.stats.bodies) if "boat left" in p]
    assert len(sent) == 1
    assert all(sentence in sent[0] for sentence in TALE)


@pytest.mark.parametrize("sentences", [40, 173, 420])
def test_sliding_window_asks_five_times_and_covers_the_text(tmp_path: Path, sentences: int) -> None:
    """QRMeM, Table 6: SlidingWindow asks 5.00 requests a question."""
    tale = TALE[:sentences]
    write(tmp_path, [{"_id": "d", "text": " ".join(tale)}], [{"question": "When?"}])
    with in_thread(OpenAIServer()) as server:
        words = ("--system", "sliding-window", "--prompts", "paper", "--abstain")
        assert run(server, "plain", tmp_path, *words, "--window", "4096") == 0
        sent = [p for p in map(said_in, server.stats.bodies) if "boat left" in p]
    assert len(sent) == 5
    held = [sum(sentence in prompt for sentence in tale) for prompt in sent]
    assert sum(held) == sentences, "each sentence is read once"
    assert max(held) - min(held) <= 8


def test_sliding_window_asks_more_often_where_five_windows_do_not_hold_the_text(
    tmp_path: Path,
) -> None:
    write(tmp_path, [{"_id": "d", "text": " ".join(TALE)}], [{"question": "When?"}])
    with in_thread(OpenAIServer()) as server:
        words = ("--system", "sliding-window", "--abstain", "--window", "2000")
        assert run(server, "plain", tmp_path, *words) == 0
        sent = [p for p in map(said_in, server.stats.bodies) if "boat left" in p]
    assert len(sent) > 5
    assert all(any(sentence in prompt for prompt in sent) for sentence in TALE)


BY_PROMPT = ("Prompt", "Prompt (the model's sampling)")
CASES = {
    "bestanswer": {"question": "How?", "all_answers": ["No.", "So.", "Thus."], "answer": "A2"},
    "tsort": {"before": "Dawn.", "segments": ["She ate.", "She rose."], "after": "She left."},
}


@pytest.mark.parametrize(
    ("task", "file", "printed"),
    [
        ("bestanswer", "bestanswer_1k.jsonl", "Sample output:\nAnswer: A4"),
        ("tsort", "tsort_2k.jsonl", "Answer: [2, 1]"),
    ],
)
def test_ada_leval_s_tables_have_trees_and_the_model_s_own_sampling(
    tmp_path: Path, task: str, file: str, printed: str
) -> None:
    """Appendix B: no temperature for open models; ILM-TR and RAPTOR answer as in appendix A.3."""
    case = {**CASES[task], "answer": CASES[task].get("answer", [2, 1])}
    (tmp_path / file).write_text(json.dumps(case))
    words = ("--system", ",".join((*BY_PROMPT, "ILM-TR", "RAPTOR")))
    with in_thread(OpenAIServer()) as server:
        assert run(server, f"ada-leval-{task}", tmp_path, *words) == 1, "one length is there"
        bodies = list(server.stats.bodies)
    preset = preset_named(f"ada-leval-{task}")
    ran = [row["system"] for row in rows(f"r/{folder_of(preset.parts[0])}")]
    assert sorted(ran) == ["ada-leval", "ada-leval:sampling=model", "inner-loop", "raptor"]
    config = json.loads(Path("r", folder_of(preset.parts[0]), "run.json").read_text())
    assert config["settings"]["paper_exact"]
    assert config["parameters"]["inner-loop"]["paper_exact"], "as in the whole run"
    sent = [body.get("temperature") for body in bodies if printed in said_in(body)]
    assert sorted(map(str, sent)) == ["0.0", "None"]
    assert any("(Surprise)" in said_in(body) for body in bodies), "ILM-TR's own tree"
    assert any("(Memory):" in said_in(body) for body in bodies), "and its loop"
    summaries = [body for body in bodies if body.get("repeat_penalty") == 1.18]
    assert any("(Surprise)" in said_in(body) for body in summaries), "appendix A.3"
    assert any("matter most" in said_in(body) for body in summaries), "RAPTOR's"
    assert preset_named("ada-leval-ultra-long").systems == preset.systems


@pytest.mark.parametrize(("unread", "ending", "calls"), [((0,), 0, 9), ((0, 20, 39), 2, 18)])
def test_a_window_whose_reply_cannot_be_read_counts_with_its_repeats(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    unread: tuple[int, ...],
    ending: int,
    calls: int,
) -> None:
    """Section 3.2 of QRMeM: up to four retries. A plan has none, and says so.

    Where no window answers, what ends the question is a forced answer and its shortening.
    """

    def mumbling(request: Mapping[str, Json]) -> str:
        said = said_in(request)
        is_unread = "Action: -1 or -2" in said and any(TALE[n] in said for n in unread)
        return "Hm." if is_unread else answering.answer(request)

    write(tmp_path, [{"_id": "d", "text": " ".join(TALE[:40])}], [{"question": "When?"}])
    words: tuple[str, ...] = ("--system", "sliding-window", "--prompts", "paper")
    words = words if ending else (*words, "--abstain")
    with in_thread(OpenAIServer(answer=mumbling)) as server:
        assert run(server, "plain", tmp_path, *words) == 0
        sent = [p for p in map(said_in, server.stats.bodies) if "boat left" in p]
        plan = ["eval", "plan", "plain", "--data", str(tmp_path), "--embedder", "none", *words]
        assert main([*plan, "--model", "gpt-4o-mini"]) == 0
    assert len(sent) == 5 + 4 * len(unread) + bool(ending) == calls
    (found,) = csv.DictReader(Path("r/report/costs.csv").read_text().splitlines())
    assert found["calls / item, as papers count"] == f"{calls}.00"
    told = capsys.readouterr().out
    assert "unreadable replies come on top" in told
    assert f"5-{5 + ending} calls" in told
