"""The benchmark `peers`: its server's replies in each form, and its counts."""

import json
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest

from benchmarks.peers import environments
from benchmarks.peers.comparing import Row, Spent, hashed, ranking, recall, spent
from benchmarks.peers.environments import Program, python_of
from benchmarks.peers.page import drawn, table
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


def test_hippo_prompts_get_names_triples_and_a_filtered_list(answers: Answers) -> None:
    names = request("extract named entities from the given paragraph", f"Ada Lovelace\n{TEXT}")
    assert json.loads(answers(names)) == {"named_entities": DOC["extracted_entities"]}
    triples = json.loads(answers(request("construct an RDF graph", f"Paragraph:\n{TEXT}")))
    assert {(head, tail) for head, _, tail in triples["triples"]} == PAIRS
    facts = {"fact": [["Ada", "born in", "1815"], ["Bob", "lives in", "Paris"]]}
    asked = (
        f"[[ ## question ## ]]\nWhere was Ada born?\n\n[[ ## fact_before_filter ## ]]\n"
        f"{json.dumps(facts)}\n\nRespond with the corresponding output fields"
    )
    head, reply, *_, last = answers(request(asked)).splitlines()
    assert (head, last) == ("[[ ## fact_after_filter ## ]]", "[[ ## completed ## ]]")
    assert json.loads(reply) == {"fact": facts["fact"][:1]}


def test_a_graph_with_ids_joins_nodes_that_it_has(answers: Answers) -> None:
    graph = json.loads(answers(request(f'"start_node_id"…\nInput text:\n\n{TEXT}')))
    ids = {node["id"]: node["properties"]["name"] for node in graph["nodes"]}
    assert list(ids.values()) == NAMES
    pairs = {(ids[r["start_node_id"]], ids[r["end_node_id"]]) for r in graph["relationships"]}
    assert pairs == PAIRS


def named(schema: str, text: str) -> dict[str, Any]:
    form = {"type": "json_schema", "json_schema": {"name": schema, "schema": {}}}
    return {**request(text), "response_format": form}


def test_graphiti_gets_names_and_facts(answers: Answers) -> None:
    found = json.loads(answers(named("ExtractedEntities", f"<TEXT>\n{TEXT}\n</TEXT>")))
    assert [one["name"] for one in found["extracted_entities"]] == NAMES
    facts = json.loads(answers(named("ExtractedEdges", f"<CURRENT_MESSAGE>\n{TEXT}")))["edges"]
    assert {(f["source_entity_name"], f["target_entity_name"]) for f in facts} == PAIRS
    assert all(re.fullmatch("[A-Z_]+", fact["relation_type"]) for fact in facts)


def test_graphiti_joins_only_what_is_spelled_the_same(answers: Answers) -> None:
    new = [{"id": 0, "name": "Ada Lovelace"}, {"id": 1, "name": "Ada"}]
    known = [{"candidate_id": 7, "name": "ada lovelace"}]
    asked = (
        f"<ENTITIES>\n{json.dumps(new)}\n</ENTITIES>\n"
        f"<EXISTING ENTITIES>\n{json.dumps(known)}\n</EXISTING ENTITIES>"
    )
    reply = json.loads(answers(named("NodeResolutions", asked)))["entity_resolutions"]
    assert [(one["id"], one["duplicate_candidate_id"]) for one in reply] == [(0, 7), (1, -1)]
    facts = [{"idx": 0, "fact": "Ada met Bob."}, {"idx": 1, "fact": "Ada met Eve."}]
    asked = f"<EXISTING FACTS>\n{facts}\n</EXISTING FACTS>\n<NEW FACT>\nAda met Eve\n</NEW FACT>"
    assert json.loads(answers(named("EdgeDuplicate", asked))) == {
        "duplicate_facts": [1],
        "contradicted_facts": [],
    }


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


# --- the page ------------------------------------------------------------------------------------


def test_the_page_names_what_was_not_run_and_the_chart_shows_the_rest() -> None:
    run = Program("one", "1.0", (), "10 passages")
    row = Row(run, recalls=(0.5, 0.75, 1), passages_shown=10, build=Spent(6, 300, 90), lost=2)
    rows = [row, Row(Program("two", "2.0", (), ""), why_not="it needs <more>")]
    lines = "\n".join(table(rows, passages=3, questions=2))
    assert "| one | 1.0 | 50 75 100 | 10 | 2 | 0 | 10 passages |" in lines
    assert "| one | 2.00; 100 + 30; 0.0 |" in lines
    assert "Not run: **two** 2.0: it needs <more>" in lines
    chart = fromstring(drawn(rows, passages=3))
    shown = [str(text.text).strip() for text in chart.iter("{http://www.w3.org/2000/svg}text")]
    assert shown[2:] == ["one", "75", "130"]


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


def test_two_programs_that_share_an_environment_make_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    created: list[Path] = []

    def create(place: Path, **_: bool) -> None:
        created.append(place)
        time.sleep(0.05)
        place.mkdir(parents=True)

    def install(python: Path, packages: Sequence[str]) -> None:
        """Install nothing."""

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("benchmarks.peers.environments.venv.create", create)
    monkeypatch.setattr(environments, "_pip", install)
    programs = [Program(name, "", ("qrmem",), "", environment="shared") for name in ("one", "two")]
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(python_of, programs)
    assert first == second
    assert created == [tmp_path / "qrmem" / "peers" / "shared"]
