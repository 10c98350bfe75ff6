"""The benchmark `peers`: what its server replies in each form, and how it counts."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from benchmarks.peers.comparing import hashed, ranking, recall, spent
from benchmarks.peers.replies import UNKNOWN, Answers, Call, Extracts, extract_of, folded
from benchmarks.peers.runners.job import Phase, Shown
from benchmarks.replies_of_size import Replies

TEXT = 'Ada "Ada" Lovelace was born in London (England) in 1815.'
DOC = {
    "title": "Ada Lovelace",
    "text": TEXT,
    "extracted_entities": ["Ada Lovelace", "London (England)"],
    "extracted_triples": [
        ["Ada Lovelace", "born in", "London (England)"],
        ["Ada Lovelace", "born in", "1815"],
        ["not", "of three", "parts", "at all"],
    ],
}
NAMES = ["Ada Lovelace", "London (England)", "1815"]
PAIRS = {("Ada Lovelace", "London (England)"), ("Ada Lovelace", "1815")}


@pytest.fixture
def answers() -> Answers:
    return Answers(Extracts([extract_of(DOC)]), Replies({}))


def request(*texts: str, schema: Mapping[str, Any] | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {"messages": [{"role": "user", "content": text} for text in texts]}
    if schema is not None:
        form = {"name": "reply", "schema": schema}
        made["response_format"] = {"type": "json_schema", "json_schema": form}
    return made


def form_of(answers: Answers) -> str:
    return answers.calls[-1].form


def test_tuples_name_what_the_stored_extraction_names(answers: Answers) -> None:
    asked = f'Format each entity as ("entity"<|>name<|>…)\nText: Ada Lovelace\n{TEXT}\nOutput:'
    reply = answers(request(asked))
    assert reply.endswith("<|COMPLETE|>")
    rows = [
        re.fullmatch(r"\((.*)\)", row.strip())
        for row in reply.removesuffix("<|COMPLETE|>").split("##")
    ]
    parts = [row.group(1).split("<|>") for row in rows if row]
    assert len(parts) == len(rows)
    entities = [row for row in parts if row[0] == '"entity"']
    relations = [row for row in parts if row[0] == '"relationship"']
    assert [row[1].strip('"') for row in entities] == NAMES
    assert all(len(row) == 4 for row in entities)
    assert {(row[1].strip('"'), row[2].strip('"')) for row in relations} == PAIRS
    assert all(len(row) == 5 and float(row[4]) for row in relations)


def test_nothing_was_missed_in_the_last_extraction(answers: Answers) -> None:
    first = f'("entity"<|>name)\nText: {TEXT}'
    assert answers(request(first, "MANY entities were missed in …")) == "<|COMPLETE|>"
    assert answers(request(first, "Answer YES | NO if there are still …")) == "NO"


def test_rows_have_four_or_five_parts(answers: Answers) -> None:
    asked = f"entity<|#|>entity_name<|#|>…\n---Input Text---\n```\n{TEXT}\n```\n---Output---"
    *rows, last = answers(request(asked)).splitlines()
    assert last == "<|COMPLETE|>"
    parts = [row.split("<|#|>") for row in rows]
    assert [row[1] for row in parts if row[0] == "entity" and len(row) == 4] == NAMES
    pairs = {(row[1], row[2]) for row in parts if row[0] == "relation" and len(row) == 5}
    assert pairs == PAIRS
    assert len(parts) == len(NAMES) + len(PAIRS)


def test_keywords_are_names_and_other_words(answers: Answers) -> None:
    asked = '{"high_level_keywords": […]}\nUser Query: Where was Ada Lovelace born?\n\n---Output---'
    assert json.loads(answers(request(asked))) == {
        "high_level_keywords": ["born"],
        "low_level_keywords": ["Ada Lovelace"],
    }


def test_a_graph_in_json_has_ends_that_are_named(answers: Answers) -> None:
    asked = f"lists: other_relationships\n<<DOCUMENT_START>>\n{TEXT}\n<<DOCUMENT_END>>"
    graph = json.loads(answers(request(asked)))
    assert graph.keys() == {"entities", "relationships", "other_relationships"}
    assert [entity["name"] for entity in graph["entities"]] == NAMES
    assert {(r["source"], r["target"]) for r in graph["relationships"]} == PAIRS
    assert all({"name", "type", "desc"} == entity.keys() for entity in graph["entities"])
    again = json.loads(answers(request(asked, "MANY entities were missed in the last …")))
    assert again == {"entities": [], "relationships": [], "other_relationships": []}


def test_a_question_has_named_and_generic_words(answers: Answers) -> None:
    asked = 'Output: {"named": […], "generic": […]}\n-INPUT-\nQuery: Who taught Ada Lovelace?\n'
    reply = json.loads(answers(request(asked)))
    assert reply == {"named": ["Ada Lovelace"], "generic": ["taught"]}


def test_each_triple_is_a_fact(answers: Answers) -> None:
    said = json.dumps([{"role": "user", "content": f"Ada Lovelace\n{TEXT}"}])
    asked = ("# ROLE\nYou are a Memory Extractor", f"## New Messages\n{said}\n\n# Output:")
    facts = json.loads(answers(request(*asked)))["memory"]
    assert [fact["text"] for fact in facts] == [
        "Ada Lovelace born in London (England)",
        "Ada Lovelace born in 1815",
    ]


def test_a_prompt_that_no_form_fits_is_counted(answers: Answers) -> None:
    schema = {
        "type": "object",
        "properties": {"verdict": {"type": "boolean"}, "why": {"type": "string"}},
    }
    assert json.loads(answers(request("Is it so?", schema=schema))) == {
        "verdict": False,
        "why": "text",
    }
    assert form_of(answers) == UNKNOWN
    assert sum(answers.unknown.values()) == 1


def test_the_last_passage_of_a_prompt_is_the_one_that_is_read() -> None:
    other = {**DOC, "title": "Other", "text": "Bob Hale lives in Paris."}
    extracts = Extracts([extract_of(DOC), extract_of(other)])
    found = extracts.within(f"An example: {other['text']}\nNow read: {json.dumps(TEXT)}")
    assert found is not None
    assert found.title == "Ada Lovelace"
    assert extracts.within("Bob Hale lives in Rome.") is None


# --- counting ------------------------------------------------------------------------------------


def test_passages_rank_by_their_first_place_in_what_is_shown() -> None:
    texts = {"a": folded("One fine day."), "b": folded("Two!"), "c": folded("Three, four.")}
    shown = [Shown(text='"three,\tfour" and two'), Shown(id="b"), Shown(text="One fine day")]
    assert ranking(shown, texts) == ["c", "b", "a"]


def test_recall_is_the_mean_share_of_gold_passages() -> None:
    rankings = [["a", "b", "c"], ["d"], []]
    gold = [frozenset("ac"), frozenset("d"), frozenset("e")]
    assert recall(rankings, gold, 1) == pytest.approx((0.5 + 1 + 0) / 3)
    assert recall(rankings, gold, None) == pytest.approx((1 + 1 + 0) / 3)


def test_a_phase_has_the_calls_that_were_answered_in_it() -> None:
    calls = [Call(at, "rows", 10, 2) for at in (0.5, 1.5, 1.9, 2.5)]
    found = spent(Phase("build", 1, 2, processor=0.25), calls, [1.2, 2.2])
    assert (found.calls, found.tokens_in, found.tokens_out, found.embedded) == (2, 20, 4, 1)
    assert (found.seconds, found.processor) == (1, 0.25)


def test_vectors_are_near_where_words_are_shared() -> None:
    def near(first: str, second: str) -> float:
        pairs = zip(hashed(first, 256), hashed(second, 256), strict=True)
        return sum(a * b for a, b in pairs)

    assert near("whale hunters", "Hunters, whale!") == pytest.approx(1, abs=1e-4)
    assert near("a white whale", "the white ship") > 0.3 > near("a white whale", "old books")
    assert near("", "") == 1
