"""Loaders: each official form, on fixtures of our own; what is wrong names the record."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from qrmem.errors import UsageError
from qrmem.eval import DATASETS, Corpus, Dataset, Item, load

DATA = Path(__file__).parent / "data"


def loaded(task: str, name: str, corpus: str = "own", path: Path | None = None) -> Dataset:
    return load(task, DATA / name, Corpus(corpus, path))


def titles(dataset: Dataset, item: Item) -> list[str]:
    of = {document.id: document.title for document in dataset.contexts[item.context].documents}
    return [of[id] for id in item.gold]


def test_hotpotqa_in_both_forms_is_the_same() -> None:
    official, hub = loaded("hotpotqa", "hotpot.json"), loaded("hotpotqa", "hotpot_hub.jsonl")
    first = official.items[0]
    assert first.labels == {"type": "bridge", "level": "easy"}
    assert titles(official, first) == ["Marigold (ship)", "Lemuel Strake"]
    assert [n for _, n in first.facts] == [0, 1]
    assert hub.items[0].gold == first.gold
    assert hub.items[0].facts == first.facts
    text = {d.id: d.text for d in official.contexts["h1"].documents}[first.gold[1]]
    assert text == "Lemuel Strake was a shipwright and bell-founder. He was born in Vantry in 1770."


def test_a_union_holds_every_passage_once() -> None:
    dataset = loaded("hotpotqa", "hotpot.json", "union")
    assert list(dataset.contexts) == ["union"]
    names = [document.title for document in dataset.contexts["union"].documents]
    assert len(names) == len(set(names)) == 6
    assert titles(dataset, dataset.items[1]) == ["Marigold (ship)", "Corrin Head"]


def test_two_wiki_sentences_are_joined_with_spaces() -> None:
    dataset = loaded("2wikimultihopqa", "two_wiki.json")
    texts = [document.text for document in dataset.contexts["w1"].documents]
    assert texts[0] == "The Marigold was a ship. It was built by Lemuel Strake."


def test_musique_full_tells_what_cannot_be_answered() -> None:
    answerable, not_so = loaded("musique", "musique_full.jsonl").items
    assert answerable.answers == ("Vantry", "the town of Vantry")
    assert answerable.labels == {"hops": "2"}
    assert (answerable.is_answerable, not_so.is_answerable) == (True, False)
    assert answerable.id != not_so.id


def test_hippo_questions_are_asked_of_their_corpus() -> None:
    corpus = DATA / "hippo" / "corpus.json"
    dataset = loaded("musique", "hippo/questions.json", "file", corpus)
    assert len(dataset.contexts["union"].documents) == 4
    assert titles(dataset, dataset.items[0]) == ["Marigold (ship)", "Lemuel Strake"]
    assert [file.path.name for file in dataset.files] == ["questions.json", "corpus.json"]


def test_a_corpus_without_a_gold_passage_is_refused(tmp_path: Path) -> None:
    corpus = json.loads((DATA / "hippo" / "corpus.json").read_text())[1:]
    (tmp_path / "corpus.json").write_text(json.dumps(corpus))
    with pytest.raises(UsageError, match="lacks the passage 'Marigold"):
        loaded("musique", "hippo/questions.json", "file", tmp_path / "corpus.json")


def test_quality_joins_the_writers_of_an_article() -> None:
    dataset = loaded("quality", "quality.jsonl")
    assert list(dataset.contexts) == ["70001"]
    assert [item.labels["difficulty"] for item in dataset.items] == ["easy", "hard", "hard"]
    assert [item.choices[item.choice or 0] for item in dataset.items] == [
        "Ada Holm",
        "His brother had been in danger.",
        "who rang the bell",
    ]
    assert dataset.items[2].choices[3] == "who kept the lamp before (4)", "options all differ"


def test_leval_options_are_taken_out_of_the_instruction() -> None:
    first, second = loaded("leval-quality", "leval_quality.jsonl").items
    assert first.question == "Who rang the bell?"
    assert first.choices == ("Piet Arden", "Ada Holm", "Lemuel Strake", "the crew")
    assert (first.choice, second.choice) == (1, 3)


@pytest.mark.parametrize("name", ["longbench_hotpotqa.jsonl", "longbench_hotpotqa_keyed.json"])
def test_longbench_in_both_forms_is_the_same(name: str) -> None:
    dataset = loaded("longbench-hotpotqa", name)
    (item,) = dataset.items
    (document,) = dataset.contexts[item.context].documents
    assert item.question == "In which city was the builder of the Marigold born?"
    assert item.answers == ("Vantry",)
    assert document.text.startswith("Passage 1:\nMarigold (ship)\n")
    assert document.text.endswith("Corrin Head is a cape in the north.")


def test_longbench_stories_and_reports() -> None:
    story = loaded("longbench-narrativeqa", "longbench_narrativeqa_keyed.json").items[0]
    assert (story.question, story.answers) == ("Who rang the bell?", ("Ada Holm", "Ada"))
    report = loaded("longbench-gov_report", "longbench_gov_report.jsonl").items[0]
    assert report.question == "Write a one-page summary of the report."
    assert (story.labels, report.labels) == ({}, {"answers": "whole"}), "summaries stay whole"


def test_narrativeqa_reads_stories_else_summaries(tmp_path: Path) -> None:
    dataset = loaded("narrativeqa", "narrativeqa")
    (item,) = dataset.items
    assert item.answers == ("Ada Holm", "Ada, the keeper")
    assert dataset.contexts["abc1"].documents[0].text.startswith("The lamp at Corrin Head")
    for name in ("qaps.csv", "third_party/wikipedia/summaries.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((DATA / "narrativeqa" / name).read_bytes())
    summaries = load("narrativeqa", tmp_path, Corpus())
    assert summaries.contexts["abc1"].documents[0].text.startswith("Ada Holm rings")


def test_repoeval_brings_the_repository_along(tmp_path: Path) -> None:
    (tmp_path / "line.jsonl").write_bytes((DATA / "repoeval_line.jsonl").read_bytes())
    with pytest.raises(UsageError, match="'own_shop' is not beside"):
        load("repoeval-line", tmp_path / "line.jsonl", Corpus())
    code = tmp_path / "repositories" / "own_shop" / "shop" / "cart.py"
    code.parent.mkdir(parents=True)
    code.write_text("def total(items):\n    count = 0\n")
    (code.parent / "broken.py").write_bytes(b"\xff\xfe\x00")
    dataset = load("repoeval-line", tmp_path / "line.jsonl", Corpus())
    (item,) = dataset.items
    assert (item.labels["file"], item.labels["line"]) == ("shop/cart.py", "3")
    assert [d.id for d in dataset.contexts["own_shop"].documents] == ["shop/cart.py"]


def test_mtbenchplus_gold_turns_are_those_of_the_topics_asked_for() -> None:
    (item,) = loaded("mtbenchplus", "mtbenchplus.json").items
    assert item.gold == ("turn-00000001", "turn-00000002")
    assert item.question == "How long does the casting we spoke of take?"


def test_locomo_keeps_turns_with_speaker_time_and_photo_and_their_evidence() -> None:
    dataset = loaded("locomo", "locomo.json")
    (context,) = dataset.contexts.values()
    first, second, third = context.documents
    assert (first.title, first.text) == (
        "Nell, 2023-05-08T13:56:00",
        "I went sailing yesterday.",
    )
    assert second.text == "Look! [shares a photo of a red kite]"
    assert third.metadata["chat"] == "session-2"
    assert [item.gold for item in dataset.items] == [
        ("turn-00000001",),
        ("turn-00000002", "turn-00000003"),
        (),
    ]
    assert [item.labels["category"] for item in dataset.items] == [
        "temporal",
        "multi-hop",
        "unanswerable",
    ]
    assert dataset.items[1].answers == ("2",)
    assert not dataset.items[2].is_answerable


def test_evidence_that_names_nothing_is_counted(tmp_path: Path) -> None:
    chat = json.loads((DATA / "locomo.json").read_text(encoding="utf-8"))
    chat["qa"][0]["evidence"] += ["D4:36", "D:11:26"]
    (tmp_path / "1.json").write_text(json.dumps(chat), encoding="utf-8")
    items = load("locomo", tmp_path, Corpus()).items
    assert [item.absent for item in items] == [2, 1, 0]
    assert items[0].gold == ("turn-00000001",)
    (record, *_) = json.loads((DATA / "hotpot.json").read_text(encoding="utf-8"))
    named = {title for title, _ in record["supporting_facts"]}
    record["context"] = [one for one in record["context"] if one[0] != min(named)]
    (tmp_path / "hotpot.json").write_text(json.dumps([record]), encoding="utf-8")
    (item,) = load("hotpotqa", tmp_path / "hotpot.json", Corpus()).items
    assert (item.absent, len(item.gold)) == (1, len(named) - 1)


def test_beam_keeps_turns_in_batches_with_times_and_sources_by_ability() -> None:
    for path in (DATA / "beam", DATA / "beam" / "7" / "chat.json"):
        dataset = load("beam", path, Corpus())
        (context,) = dataset.contexts.values()
        first, *_, last = context.documents
        assert (first.title, first.text) == (
            "user, 2024-03-15T00:00:00",
            "My kiln fires at 1,040 degrees.",
        )
        assert (last.metadata["chat"], last.metadata["at"]) == ("batch-2", "2024-04-02T00:00:00")
        told = {item.labels["ability"]: item for item in dataset.items}
        assert told["knowledge_update"].gold == ("turn-00000001", "turn-00000004")
        assert told["knowledge_update"].answers == ("1,060 degrees",)
        assert told["instruction_following"].gold == ("turn-00000003",)
        assert not told["abstention"].is_answerable
        assert len(told["knowledge_update"].rubric) == 2
        assert told["instruction_following"].rubric == ()
        assert {item.context for item in dataset.items} == {"7"}


def test_a_chat_of_beam_without_its_questions_is_named(tmp_path: Path) -> None:
    chat = (DATA / "beam" / "7" / "chat.json").read_text(encoding="utf-8")
    (tmp_path / "chat.json").write_text(chat, encoding="utf-8")
    with pytest.raises(UsageError, match="probing_questions"):
        load("beam", tmp_path, Corpus())


def test_a_folder_of_locomo_conversations_is_one_data_set(tmp_path: Path) -> None:
    text = (DATA / "locomo.json").read_text(encoding="utf-8")
    for name in ("1", "2"):
        (tmp_path / f"{name}.json").write_text(text, encoding="utf-8")
    dataset = load("locomo", tmp_path, Corpus())
    assert list(dataset.contexts) == ["1", "2"]
    assert len(dataset.items) == 6


def test_a_users_own_folder() -> None:
    dataset = loaded("plain", "plain")
    first, second, third = dataset.items
    assert first.labels == {"hops": "2"}
    assert (second.id, second.choice) == ("q2", 1)
    assert not third.is_answerable
    assert [d.id for d in dataset.contexts["corpus"].documents] == ["d1", "d2", "d3"]


BROKEN: dict[str, list[dict[str, object]]] = {
    "hotpotqa": [
        {"_id": "x", "question": "", "answer": "a", "supporting_facts": [], "context": []}
    ],
    "musique": [{"id": "x", "question": "q"}],
    "2wikimultihopqa": [{"_id": "x", "context": [["T", []]], "supporting_facts": []}],
    "quality": [{"article_id": "1", "article": "text", "questions": [{"options": ["a", "b"]}]}],
    "leval-quality": [{"input": "text", "instructions": ["no options"], "outputs": ["(A) a"]}],
    "longbench-hotpotqa": [{"origin_prompt": "no passages here", "gold": ["a"]}],
    "mtbenchplus": [{"id": "x", "conversations": [], "type": "t"}],
    "repoeval-line": [{"prompt": "x = ", "metadata": {}}],
}


@pytest.mark.parametrize("task", BROKEN)
def test_a_broken_record_is_named(task: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in BROKEN[task]))
    with pytest.raises(UsageError, match=r"broken\.jsonl: (line 1|record)"):
        load(task, path, Corpus())


FORMS = {
    "hotpot.json": "hotpotqa",
    "hotpot_hub.jsonl": "hotpotqa",
    "two_wiki.json": "2wikimultihopqa",
    "musique_full.jsonl": "musique",
    "quality.jsonl": "quality",
    "leval_quality.jsonl": "leval-quality",
    "longbench_hotpotqa.jsonl": "longbench-hotpotqa",
    "longbench_hotpotqa_keyed.json": "longbench-hotpotqa",
    "longbench_gov_report.jsonl": "longbench-gov_report",
    "mtbenchplus.json": "mtbenchplus",
}


WRONG: tuple[Any, ...] = (None, 7, [], {}, "")


@pytest.mark.parametrize("name", FORMS)
def test_an_error_in_a_record_names_its_file_and_record(name: str, tmp_path: Path) -> None:
    first, whole = first_record((DATA / name).read_text())
    refused = 0
    for place in list(places(first)):
        for value in WRONG:
            record = json.loads(json.dumps(first))
            inner = record
            for step in place[:-1]:
                inner = inner[step]
            inner[place[-1]] = value
            path = tmp_path / "changed.json"
            path.write_text(json.dumps(whole(record)))
            told = refusal(FORMS[name], path)
            refused += bool(told)
            assert re.search(r"changed\.json: (line 1|record)|^$", told), (place, value)
    assert refused > 10


def refusal(task: str, path: Path) -> str:
    """Return why a file is refused, or nothing where it is taken."""
    try:
        load(task, path, Corpus())
    except UsageError as exc:
        return str(exc)
    return ""


def first_record(text: str) -> tuple[Any, Callable[[Any], Any]]:
    """Return the first record of a file, and what makes a file of it."""
    try:
        found = json.loads(text)
    except ValueError:
        return json.loads(text.splitlines()[0]), lambda record: record
    if isinstance(found, list):
        return found[0], lambda record: [record]
    key = next(iter(found))
    return (found[key], lambda record: {key: record}) if key == "0" else (found, lambda r: r)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to everything inside of a record, the first two of a list."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:2])
    for key, part in inner:
        yield (*at, key)
        if isinstance(part, dict | list):
            yield from places(part, (*at, key))


@pytest.mark.parametrize("name", ["mtbenchplus.json", "quality.jsonl", "hotpot.json"])
def test_two_records_of_one_id_are_refused(name: str, tmp_path: Path) -> None:
    first, _ = first_record((DATA / name).read_text())
    path = tmp_path / "twice.json"
    path.write_text(json.dumps([first, first]))
    with pytest.raises(UsageError, match="two records have the id"):
        load(FORMS[name], path, Corpus())


def test_a_row_of_narrativeqa_that_is_cut_is_named(tmp_path: Path) -> None:
    for name in ("qaps.csv", "third_party/wikipedia/summaries.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((DATA / "narrativeqa" / name).read_bytes())
    rows = (tmp_path / "qaps.csv").read_text().splitlines()
    (tmp_path / "qaps.csv").write_text("\n".join([*rows, "abc1,test"]) + "\n")
    with pytest.raises(UsageError, match=rf"qaps\.csv: record {len(rows)} ends before its"):
        load("narrativeqa", tmp_path, Corpus())


def test_a_line_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.jsonl"
    good = (DATA / "hotpot_hub.jsonl").read_text()
    path.write_text(good + good[:100])
    with pytest.raises(UsageError, match="line 2 is not JSON"):
        load("hotpotqa", path, Corpus())


def test_a_line_may_hold_other_ends_of_lines_inside_a_text(tmp_path: Path) -> None:
    record = json.loads((DATA / "hotpot_hub.jsonl").read_text())
    record["question"] = "In which city\u2028was\x85he born?"
    path = tmp_path / "ends.jsonl"
    path.write_text(json.dumps(record, ensure_ascii=False) + "\n", encoding="utf-8")
    assert len(load("hotpotqa", path, Corpus()).items) == 1


@pytest.mark.parametrize("content", [b"", b"[]", b"\n\n"])
def test_a_file_without_records_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_bytes(content)
    with pytest.raises(UsageError, match="holds no records"):
        load("hotpotqa", tmp_path / "empty.json", Corpus())


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ({"question": "Q?", "gold": ["d9"]}, "'d9', which is not in corpus.jsonl"),
        ({"question": "Q?", "answer": "c", "options": ["a", "b"]}, "exactly one of the options"),
        ({"question": " "}, "line 1 is not of this form: field 'question'"),
        ({"question": "Q?", "answers": 7}, "'answers' is not a list of texts"),
    ],
)
def test_mistakes_in_a_users_questions_are_reported(
    question: object, told: str, tmp_path: Path
) -> None:
    (tmp_path / "corpus.jsonl").write_bytes((DATA / "plain" / "corpus.jsonl").read_bytes())
    (tmp_path / "questions.jsonl").write_text(json.dumps(question))
    with pytest.raises(UsageError, match=told):
        load("plain", tmp_path, Corpus())


def test_every_task_says_where_its_data_is_and_under_which_licence() -> None:
    for task in dict(DATASETS.items()).values():
        assert task.where
        assert task.licence
        assert task.metrics


REAL = {
    "hotpotqa": ("hotpotqa/rpt_dev300.jsonl", 300, 300),
    "musique": ("musique/migres_dev200.jsonl", 200, 200),
    "2wikimultihopqa": ("2wikimultihopqa/migres_train500_llm_decomp.jsonl", 500, 500),
    "leval-quality": ("quality/leval_quality15docs.jsonl", 202, 15),
    "longbench-hotpotqa": ("longbench/hotpotqa.json", 13, 13),
    "longbench-2wikimqa": ("longbench/2wikimqa.json", 13, 13),
    "longbench-musique": ("longbench/musique.json", 7, 7),
    "longbench-narrativeqa": ("longbench/narrativeqa.json", 6, 6),
    "longbench-gov_report": ("longbench/gov_report.json", 12, 12),
    "mtbenchplus": ("mtbenchplus/mtbenchplus.json", 54, 54),
}


@pytest.mark.data
@pytest.mark.parametrize("task", REAL)
def test_real_files_load_whole(task: str) -> None:
    if "QRMEM_DATA" not in os.environ:
        pytest.skip("QRMEM_DATA names no folder with data")
    name, items, contexts = REAL[task]
    dataset = load(task, Path(os.environ["QRMEM_DATA"]) / name, Corpus())
    assert (len(dataset.items), len(dataset.contexts)) == (items, contexts)
    assert all(item.context in dataset.contexts for item in dataset.items)


def test_a_file_that_differs_from_the_published_one_is_marked(tmp_path: Path) -> None:
    other = tmp_path / "hotpot_dev_distractor_v1.json"
    other.write_bytes((DATA / "hotpot.json").read_bytes())
    assert load("hotpotqa", other, Corpus()).files[0].verified is False
    assert loaded("hotpotqa", "hotpot.json").files[0].verified is None


def test_what_texts_are_read_of_is_among_the_files(tmp_path: Path) -> None:
    folder = tmp_path / "n"
    shutil.copytree(DATA / "narrativeqa", folder)
    names = [file.path.name for file in load("narrativeqa", folder, Corpus()).files]
    assert names == ["qaps.csv", "tmp"]
    story = folder / "tmp" / "abc1.content"
    before = load("narrativeqa", folder, Corpus()).files[1].sha256
    story.write_text("Another story.")
    assert load("narrativeqa", folder, Corpus()).files[1].sha256 != before
    story.write_text("")
    (folder / "qaps.csv").write_bytes(b"\xef\xbb\xbf" + (folder / "qaps.csv").read_bytes())
    summaries = load("narrativeqa", folder, Corpus())
    assert [file.path.name for file in summaries.files] == ["qaps.csv", "summaries.csv"]


def test_repositories_are_among_the_files(tmp_path: Path) -> None:
    shutil.copy(DATA / "repoeval_line.jsonl", tmp_path / "line.jsonl")
    code = tmp_path / "repositories" / "own_shop" / "cart.py"
    code.parent.mkdir(parents=True)
    sums = []
    for text in ("a = 1\n", "a = 2\n"):
        code.write_text(text)
        _, repository = load("repoeval-line", tmp_path / "line.jsonl", Corpus()).files
        assert repository.path.name == "own_shop"
        sums.append(repository.sha256)
    assert sums[0] != sums[1]


@pytest.mark.parametrize("start", ["[", '{"a":'])
def test_json_that_is_nested_too_deeply_is_reported(tmp_path: Path, start: str) -> None:
    (tmp_path / "deep.json").write_text(start * 100_000)
    with pytest.raises(UsageError, match="is not JSON: maximum recursion depth"):
        load("hotpotqa", tmp_path / "deep.json", Corpus())
