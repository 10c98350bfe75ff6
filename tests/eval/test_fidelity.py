"""Everything with a paper's name does what the paper does, against the scripted server."""

import asyncio
import csv
import json
import re
from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from played import EXACT, NAMES, asked, met, never, reply, rows, run, said_in, schema_of, write
from servers import answering
from servers.openai_server import OpenAIServer, in_thread

from qrmem.config import Settings
from qrmem.eval import preset_named
from qrmem.graphstore import open_store
from qrmem.graphstore.reads import cached_value, current_folds

DATA = Path(__file__).parent / "data"
Json = Any


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_the_supporting_passages_stay_at_both_ends_and_the_length_between_grows(
    tmp_path: Path,
) -> None:
    """Figure 5 of QRMeM: [S1; S_non; S2]."""
    items = json.loads((DATA / "hotpot.json").read_text(encoding="utf-8"))
    for item in items:
        item["context"] += [
            [f"Year {n}", [f"Nothing was built in {n}."]] for n in range(1700, 1740)
        ]
    data = tmp_path / "data"
    data.mkdir()
    (data / "hotpotqa.json").write_text(json.dumps(items), encoding="utf-8")
    with in_thread(OpenAIServer()) as server:
        assert run(server, "figure-5", data, "--sample", "1") == 1, "MuSiQue is not there"
        prompts = [p for p in map(said_in, server.stats.bodies) if "Passage 1:" in p]
    gold = {title for item in items for title, _ in item["supporting_facts"]}
    lengths = []
    for prompt in prompts:
        titles = re.findall(r"Passage \d+:\s+(.*?)\s*\n", prompt)
        assert titles[0] in gold
        assert titles[-1] in gold
        assert not gold & set(titles[1:-1])
        lengths.append(len(titles))
    assert sorted(set(lengths)) == [2, 4, 6, 10, 18, 34]


def test_trials_of_figure_4_are_updates_of_the_entities(tmp_path: Path) -> None:
    """Figure 4 of QRMeM: its axis starts at one update, after which there is a second reading."""

    def never(request: Mapping[str, Json]) -> str:
        if "action" in answering.schema_of(request).get("properties", {}):
            return reply(reasoning="not enough", action=-1, answer="", quotes=[])
        return answering.answer(request)

    names = ("Ada Holm", "Bo Lind", "Cay Moor", "Dag Rune", "Eve Sand", "Finn Toft", "Gro Ulv")
    met = [f"{one} met {other} in the year of the flood. " for one, other in pairwise(names)]
    corpus = [{"_id": f"d{n}", "text": text * 12} for n, text in enumerate(met)]
    write(tmp_path, corpus, [{"_id": "q", "question": "Whom did Ada Holm meet?", "answers": ["x"]}])
    counts = {}
    with in_thread(OpenAIServer(answer=never)) as server:
        words = ("reflection:start=entities:updates=1", "reflection:start=entities:updates=2")
        assert run(server, "plain", tmp_path, "--system", ",".join(words), "--window", "1600") == 0
        for row in rows():
            steps = row["prediction"]["steps"]
            counts[row["system"]] = sum(step["action"] == "read" for step in steps)
            assert row["prediction"]["status"] == "forced"
    assert counts == dict(zip(words, (2, 3), strict=True))
    trials = [
        system.partition("updates=")[2] for system in preset_named("figure-4").systems.values()
    ]
    assert trials == list("12345678")


def test_the_summary_baseline_reads_the_whole_text_and_reduces_it_to_the_window(
    tmp_path: Path,
) -> None:
    """The summary baseline of QRMeM: map-reduce until the summaries fit the window."""
    said = [f"In the year {n} the {n}th boat left Corrin." for n in range(1000, 1600)]
    corpus = [{"_id": "d", "text": " ".join(said)}]
    write(tmp_path, corpus, [{"question": "When?", "answers": ["x"]}])
    with in_thread(OpenAIServer()) as server:
        assert run(server, "plain", tmp_path, "--system", "summary", "--window", "1200") == 0
        mapped, joined = asked(server, "summary"), asked(server, "summary-join")
    assert len(mapped) > 5
    text = "\n".join(mapped)
    assert not [sentence for sentence in said if sentence not in text], "nothing is left out"
    assert joined, "summaries that do not fit the window together are summarised again"


def test_the_papers_counts_and_all_counts_are_separate(tmp_path: Path) -> None:
    """A call that shortens an answer is no call of the method."""

    def wordy(request: Mapping[str, Json]) -> str:
        if schema_of(request) in {"judge", "answer"}:
            said = "It was Ada Holm who founded it all in the end"
            return reply(reasoning="so", action=-2, answer=said, quotes=[])
        return answering.answer(request)

    text = "Ada Holm founded the bell works of Corrin in the spring of 1832."
    write(tmp_path, [{"_id": "d", "text": text}], [{"question": "Who?", "answers": ["Ada Holm"]}])
    with in_thread(OpenAIServer(answer=wordy)) as server:
        assert run(server, "plain", tmp_path, "--system", "bm25") == 0
        assert len(asked(server, "short-answer")) == 1
        assert server.stats.requests == 2
    (found,) = csv.DictReader(Path("r/report/costs.csv").read_text().splitlines())
    assert found["calls / item, as papers count"] == "1.00"
    assert found["calls / item"] == "2.00"


def test_decomposition_sees_the_options(tmp_path: Path) -> None:
    text = "Ada Holm founded the bell works of Corrin in the spring of 1832."
    question: dict[str, Json] = {"question": "Who founded it?", "answers": ["Ada Holm"]}
    question["options"] = ["Bo Lind", "Ada Holm"]
    write(tmp_path, [{"_id": "d", "text": text}], [question])
    with in_thread(OpenAIServer()) as server:
        assert run(server, "plain", tmp_path, "--system", "decom") == 0
        (prompt,) = asked(server, "decompose")
    assert "(A) Bo Lind\n(B) Ada Holm" in prompt


def test_the_trail_of_a_retriever_keeps_its_scores(tmp_path: Path) -> None:
    texts = ("Ada Holm founded the bell works.", "The bell works stand in Corrin.", "A bell rang.")
    corpus = [{"_id": f"d{n}", "text": text} for n, text in enumerate(texts)]
    asked = [{"question": "Who founded the bell works?", "answers": ["Ada Holm"]}]
    write(tmp_path, corpus, asked)
    with in_thread(OpenAIServer()) as server:
        assert run(server, "plain", tmp_path, "--system", "bm25,search,fragment,decom") == 0
    for row in rows():
        read = [s["score"] for step in row["prediction"]["steps"] for s in step["read"]]
        assert read, row["system"]
        assert max(read) > 0, row["system"]
        if row["system"] == "bm25":
            assert read == sorted(read, reverse=True)
            assert len(set(read)) == 3


def test_a_presets_report_says_what_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "longbench").mkdir()
    text = (DATA / "longbench_hotpotqa.jsonl").read_text(encoding="utf-8")
    (tmp_path / "longbench" / "hotpotqa.jsonl").write_text(text, encoding="utf-8")
    with in_thread(OpenAIServer()) as server:
        words = ("--system", "BM25 (top 1)", "--sample", "1")
        assert run(server, "table-4", tmp_path, *words) == 1, "the other sets are not there"
    told = capsys.readouterr().out
    ran = told[told.index("What ran:") : told.index("## HotpotQA")]
    for word in ("entity tagger: rules", "embedder: none", "scored by BM25", "tokenizer: builtin"):
        assert word in ran
    for word in ("window 4096", "512 for a reply", "judge.v", "short-answer.v"):
        assert word in ran
    for word in (
        "calls, as the paper counts",
        "calls in all",
        "Differences from the paper, with reasons:",
    ):
        assert word in told


ASKED = "Who founded the bell works of Corrin?"


def _always(reply: str, request: Mapping[str, Json]) -> str:
    return reply


def test_the_set_paper_asks_as_the_appendix_does(tmp_path: Path) -> None:
    """Appendix E: one message, the text before the question, Reasoning and Action for a reply."""
    text = "Ada Holm founded the bell works of Corrin in the spring of 1832."
    write(tmp_path, [{"_id": "d", "text": text}], [{"question": ASKED, "answers": ["Ada Holm"]}])
    may_abstain = ("--abstain", "--prompts", "paper")
    with in_thread(OpenAIServer()) as server:
        assert run(server, "plain", tmp_path, "--system", "bm25", *may_abstain) == 0
        (body,) = [b for b in server.stats.bodies if "Action: -1 or -2" in said_in(b)]
    (message,) = body["messages"]
    said = message["content"]
    assert "response_format" not in body
    assert body["temperature"] == 0
    order = ["<text S1>", text, f"Question: {ASKED}", "-1:", "-2:", "Reasoning:", "Action:"]
    assert [said.index(word) for word in order] == sorted(said.index(word) for word in order)
    config = json.loads(Path("r/run.json").read_text())
    assert config["prompts"]["set"].startswith("paper ")


def test_a_reply_is_asked_for_five_times_and_the_papers_form_read_at_once(tmp_path: Path) -> None:
    """Section 3.2: temperature 0, then up to four retries at 0.7."""
    text = "Ada Holm founded the bell works of Corrin in the spring of 1832."
    write(tmp_path, [{"_id": "d", "text": text}], [{"question": ASKED, "answers": ["Ada Holm"]}])
    words = ("--system", "bm25", "--abstain", "--prompts", "paper")
    replies = {"r1": "Hm.", "r2": "Reasoning: it is said.\nAction: -2\nAnswer: Ada Holm"}
    for out, said in replies.items():
        with in_thread(OpenAIServer(answer=partial(_always, said))) as server:
            run(server, "plain", tmp_path, *words, "--out", out)
            judged = [b for b in server.stats.bodies if "Action: -1 or -2" in said_in(b)]
        heat = [body["temperature"] for body in judged]
        assert heat == ([0, 0.7, 0.7, 0.7, 0.7] if out == "r1" else [0])
    (row,) = rows("r2")
    assert row["prediction"]["text"] == "Ada Holm"


def facts_of(folder: Path) -> tuple[set[str], list[tuple[str, str, str]]]:
    """Return the entities and the relations of a run's memories."""

    async def read(file: Path) -> tuple[set[str], list[tuple[str, str, str]]]:
        store = await open_store(f"sqlite://{file}?mode=ro", Settings())
        entities = await store.list_entities("eval", 1000)
        facts = (await store.around("eval", [entity.key for entity in entities])).facts
        await store.close()
        return {e.name for e in entities}, [(f.head, f.description, f.tail) for f in facts]

    (file,) = (folder / "memories").glob("*.db")
    return asyncio.run(read(file))


def test_without_open_entity_the_model_still_relates_the_taggers_entities(tmp_path: Path) -> None:
    """Table 2: entities come from the schema-based tool alone; their relations do not."""

    def eager(request: Mapping[str, Json]) -> str:
        if schema_of(request) in {"relations", "relations-asked"}:
            lines = ["Ada Holm|met|Bo Lind", "Ada Holm|saw|the grey flood", "flood|came|year"]
            asked = [f"1|{line}" for line in lines] if "1|" in said_in(request) else lines
            return reply(relations=asked if schema_of(request) == "relations-asked" else lines)
        return answering.answer(request)

    text = "Ada Holm met Bo Lind in the year of the grey flood. " * 3
    write(tmp_path, [{"_id": "d", "text": text}], [{"question": "Whom did Ada Holm meet?"}])
    with in_thread(OpenAIServer(answer=eager)) as server:
        word = f"reflection{EXACT}:open_entity=false"
        assert run(server, "plain", tmp_path, "--system", word, "--prompts", "paper") == 0
        assert not asked(server, "entities")
        assert not asked(server, "entities-asked")
        (prompt,) = asked(server, "relations")
        assert "[[Ada Holm]] met [[Bo Lind]]" in prompt
    names, facts = facts_of(Path("r"))
    assert {"Ada Holm", "Bo Lind"} <= names
    assert not any("flood" in name or "year" in name for name in names)
    assert {(head.split("|")[0], said) for head, said, _ in facts} == {("ada holm", "met")}


def test_a_trial_shows_reason_entities_and_passages_whatever_the_names(tmp_path: Path) -> None:
    """Section 2.2: E <- LLM(E, R, S_imp, Q), until it answers or the window is used up."""
    people = [
        f"{NAMES[n % 7].split()[0]} {'BCDFGHKLMNPR'[n // 10]}ar{'abdeghilmo'[n % 10]}en"
        for n in range(120)
    ]
    said = "met {} at the bell works of the harbour."
    texts = [f"{one} {said.format(other)}" for one, other in pairwise(people)]
    corpus = [{"_id": f"d{n}", "text": text} for n, text in enumerate(texts)]
    question = f"Whom did {people[0]} marry?"

    def other(request: Mapping[str, Json]) -> str:
        if schema_of(request) == "trial":
            listed = re.findall(r"^(.+) \(\d+\)$", said_in(request), re.MULTILINE)
            return reply(entities=[listed[-1 - len(trials)]])
        return never(request)

    trials: list[str] = []
    write(tmp_path, corpus, [{"question": question, "answers": ["x"]}])
    words = ("--system", f"entity-trial{EXACT}", "--prompts", "paper", "--window", "1000")
    with in_thread(OpenAIServer(answer=other)) as server:
        assert run(server, "plain", tmp_path, *words) == 0
        trials = asked(server, "trial")
    assert len(trials) > 1
    assert len(set(trials)) == len(trials)
    for prompt in trials:
        assert "passages do not say so." in prompt
        assert "at the bell works" in prompt
        assert 1 < len(re.findall(r"\(\d+\)$", prompt, re.MULTILINE)) < 120


def test_relations_of_different_segments_are_merged_with_the_question(tmp_path: Path) -> None:
    """Section 2.1: r = LLM(r_n, S_n, r_k, S_k, Q_s, Q, T); who does what to whom counts."""

    def told(request: Mapping[str, Json]) -> str:
        said = said_in(request)
        if schema_of(request) == "relations":
            lines = ["Ada Holm|accused|Bo Lind"]
            lines += ["Ada Holm|paid|Bo Lind"] if "ledger" in said else []
            both = ["Ada Holm|forgave|Bo Lind", "Bo Lind|accused|Ada Holm"]
            lines += both if "at last" in said else []
            return reply(relations=lines)
        if schema_of(request) == "fold":
            return reply(questions=["Who began?"], description="accused, then forgave him")
        return answering.answer(request)

    filler = "Nothing else was said of it in that long and quiet year. " * 60
    text = f"Ada Holm opened the ledger before Bo Lind. {filler} Bo Lind answered Ada Holm at last."
    question = "Whom did Ada Holm accuse?"
    write(tmp_path, [{"_id": "d", "text": text}], [{"question": question, "answers": ["x"]}])
    with in_thread(OpenAIServer(answer=told)) as server:
        words = ("--system", f"reflection{EXACT}", "--prompts", "paper")
        assert run(server, "plain", tmp_path, *words) == 0
        folds = asked(server, "fold")
    assert len(folds) == 1, "what one segment states of a pair is one relation"
    assert question in folds[0]
    ledger, late = re.findall(r"<text>\n(.*?)\n</text>", folds[0][folds[0].index("#1") :], re.S)[
        ::2
    ]
    assert "ledger" in ledger
    assert "ledger" not in late
    assert "Ada Holm - accused - Bo Lind\nAda Holm - paid - Bo Lind" in folds[0]
    assert "Ada Holm - forgave - Bo Lind" in folds[0]
    assert "Bo Lind - accused - Ada Holm" not in folds[0], "what goes the other way is another one"
    assert asyncio.run(settled()) == [["Who began?"]], "Q_s stay with the merged relation"


async def settled() -> list[list[str]]:
    """Return the questions Q_s that a run's memory keeps with its merged relations."""
    (file,) = (Path("r") / "memories").glob("*.db")
    store = await open_store(f"sqlite://{file}?mode=ro", Settings())
    kept = [
        await cached_value(store, "eval", "fold", key) for key in await current_folds(store, "eval")
    ]
    await store.close()
    return [found["questions"] for found in kept if found]


def test_graph_expansion_asks_for_one_answer(tmp_path: Path) -> None:
    """Section 2.2: the question is answered once, from what fits the window."""
    write(tmp_path, met(), [{"question": "Whom did Ada Holm meet?", "answers": ["x"]}])
    with in_thread(OpenAIServer(answer=never)) as server:
        words = ("--system", f"graph-expansion{EXACT}", "--prompts", "paper", "--window", "1600")
        assert run(server, "plain", tmp_path, *words) == 0
        said = list(map(said_in, server.stats.bodies))
    assert not any("Action: -1 or -2" in prompt for prompt in said)
    assert sum("Answer: the final answer" in prompt for prompt in said) == 1


def test_navigation_takes_one_node_between_two_readings(tmp_path: Path) -> None:
    """Algorithm 1: [Q;R;E] with the options; one edge, and its score for the node's segments."""
    options = ["Bo Lind", "Gro Ulv"]
    question = {"question": "Whom did Ada Holme meet?", "answers": ["Bo Lind"], "options": options}

    def misspelt(request: Mapping[str, Json]) -> str:
        if schema_of(request) == "query-entities":
            return reply(entities=["Gro Ulv", "Ada Holme"])
        return never(request)

    write(tmp_path, met(), [question])
    with in_thread(OpenAIServer(answer=misspelt)) as server:
        words = ("--system", f"reflection{EXACT}", "--prompts", "paper", "--window", "1600")
        assert run(server, "plain", tmp_path, *words) == 0
    (row,) = rows()
    steps = row["prediction"]["steps"]
    actions = [step["action"] for step in steps]
    assert actions[:4] == ["start", "read", "expand", "read"]
    assert not any(pair == ("expand", "expand") for pair in pairwise(actions))
    assert actions[-1] == "force"
    named = ["Gro Ulv", "Ada Holm"]
    assert steps[0]["entities"] == named, "a name with no node starts at the nearest one"
    for step in steps:
        if step["action"] == "expand":
            assert all(option in step["query"] for option in options)
            assert "do not say so" in step["query"]
            assert "Ada Holm" in step["query"].split("[SEP]")[-1]
            (taken,) = (edge for edge in step["edges"] if edge.get("taken"))
            assert {one["score"] for one in step["brought"]} == {taken["score"]}


def test_the_first_hits_fill_the_window_before_anything_is_added(tmp_path: Path) -> None:
    """Section 2.2: only S_add is shortened; S_imp goes to the model as far as the window allows."""
    text = "Ada Holm kept the bell works of Corrin going through a hard and hungry winter. " * 8
    corpus = [{"_id": f"d{n}", "text": f"{text} It was {n}."} for n in range(1820, 1832)]
    corpus.append({"_id": "near", "text": "Ada Holm met Bo Lind. " * 12})
    corpus.append({"_id": "far", "text": "Bo Lind had a wife at sea. " * 12})
    write(tmp_path, corpus, [{"question": "Whom did Ada Holm marry?", "answers": ["x"]}])
    with in_thread(OpenAIServer(answer=never)) as server:
        words = ("--system", f"reflection{EXACT}", "--prompts", "paper", "--window", "1600")
        assert run(server, "plain", tmp_path, *words) == 0
        judged = [p for p in map(said_in, server.stats.bodies) if "Action: -1 or -2" in p]
    assert len(judged) == 1, "a reading that repeats one is no call"
    (costs,) = csv.DictReader(Path("r/report/costs.csv").read_text().splitlines())
    assert costs["calls / item, as papers count"] == "3.00", "names, one reading, forced answer"
    told = Path("r/report/report.md").read_text()
    assert ": 1 of 1 question that the first reading did not answer never navigated" in told
    steps = rows()[0]["prediction"]["steps"]
    reads = [s for s in steps if s["action"] == "read"]
    assert len(reads) > 1
    actions = [step["action"] for step in steps]
    assert ("expand", "expand") not in pairwise(actions), "read after each, whatever it brought"
    first = [one["segment_id"] for one in reads[0]["read"]]
    assert sum(one["tokens"] for one in reads[0]["read"]) > 1600 // 2
    for later in reads[1:]:
        assert [one["segment_id"] for one in later["read"]] == first
    brought = [one for step in steps for one in step.get("brought", ())]
    assert {one["segment_id"] for one in brought} - set(first), "there was something to add"


def test_a_preset_tags_with_corenlp_where_its_home_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """2.1 of QRMeM, the schema-based tool: the tagger is chosen, and opened from its folder."""
    assert Settings(paper_exact=True, corenlp_home="/jars").tagger == "corenlp"
    assert Settings(paper_exact=True).tagger == "rules"
    assert Settings(paper_exact=True, corenlp_home="/jars", tagger="stanza").tagger == "stanza"
    (tmp_path / "longbench").mkdir()
    text = (DATA / "longbench_hotpotqa.jsonl").read_text(encoding="utf-8")
    (tmp_path / "longbench" / "hotpotqa.jsonl").write_text(text, encoding="utf-8")
    words = ("--system", "QRMeM (KN)", "--sample", "1")
    with in_thread(OpenAIServer()) as server:
        monkeypatch.setenv("CORENLP_HOME", str(tmp_path / "no-jars"))
        assert run(server, "table-4", tmp_path, *words) == 3
        told = capsys.readouterr().err  # CoreNLP's client comes with the extra `taggers`
        assert re.search("extra `taggers`|CORENLP_HOME", told)
        assert server.stats.requests == 0


def test_fragments_are_read_best_first_where_the_paper_has_it_so(tmp_path: Path) -> None:
    """Equation 11 of FragRel, and its Prompt 1."""
    told = ["Rain fell. " * 30, "Ada Holm met Bo Lind. " * 30, "Ada Holm sailed. " * 30]
    write(tmp_path, [{"_id": "d", "text": " ".join(told)}], [{"question": "Whom met Ada Holm?"}])
    words = ("--prompts", "paper,story", "--system")
    with in_thread(OpenAIServer()) as server:
        assert run(server, "plain", tmp_path, *words, "fragment:order=score:size=100") == 0
        (prompt,) = [p for p in map(said_in, server.stats.bodies) if "Story:" in p]
    (step,) = rows()[0]["prediction"]["steps"]
    scores = [one["score"] for one in step["read"]]
    assert scores == sorted(scores, reverse=True)
    assert prompt.index("<text S1>") < prompt.index("Question: Whom")
    assert prompt.endswith("Answer:")
    assert "response_format" not in server.stats.bodies[0]


def test_fragrels_presets_have_its_order_and_its_history() -> None:
    """Equation 11, and B.3: the history moves out once."""
    for table in ("4", "5-alpha", "5-w-rel"):
        systems = preset_named(f"fragrel-table-{table}").systems.values()
        read = [system for system in systems if system.startswith("fragment")]
        assert len(read) >= 30
        assert all(":order=score" in system for system in read)
    chats = preset_named("fragrel-table-3").systems.values()
    recalled = [one for one in chats if one.startswith(("fragment-chat", "dense-chat"))]
    assert len(recalled) == 3
    assert all(":history=once" in one for one in recalled)


def test_questions_are_generated_without_the_users(tmp_path: Path) -> None:
    """Section 2.1: Q_k = LLM(T, S_k, E_k, R_k); entities are sought with Q."""
    question = "Whom did Ada Holm meet?"
    write(tmp_path, met()[:1], [{"question": question, "answers": ["x"]}])
    with in_thread(OpenAIServer()) as server:
        words = ("--system", f"reflection{EXACT}", "--prompts", "paper")
        assert run(server, "plain", tmp_path, *words) == 0
        (generated,) = asked(server, "questions")
        (entities,) = asked(server, "entities")
        (related,) = asked(server, "relations")
    assert question not in generated
    assert question in entities
    order = ["4. ", "# The text\n", "marked [[so]]", "[[Ada Holm]]", "name|description"]
    assert [related.index(word) for word in order] == sorted(map(related.index, order))
    assert question not in related
    assert "Background" not in related, "the printed prompt shows segment and entities alone"
    order = ["Passage:", "Entities noted:", "Relations noted:", "Questions wanted:"]
    assert [generated.index(word) for word in order] == sorted(map(generated.index, order))
