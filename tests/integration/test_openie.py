"""Extractions made elsewhere, as files of every form, in a memory that is asked afterwards."""

import hashlib
import json
import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from archives import write
from contract.reference import ReferenceStore
from fakes import HashEmbedder
from servers.openai_server import serving

import qrmem
from qrmem.agents.embedding import embed_segments
from qrmem.errors import BadImport, MissingError, QrmemError
from qrmem.graphstore import NamespaceInfo
from qrmem.io.openie import Deps, import_openie
from qrmem.memory import Memory
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import ExtractionReport

DOCS: list[dict[str, Any]] = [
    {
        "title": "Ada",
        "text": "Ada Lovelace met Charles Babbage in London. She wrote notes.",
        "passage": "Ada\nAda Lovelace met Charles Babbage in London. She wrote notes.",
        "extracted_entities": ["Ada Lovelace", "Charles Babbage", "ada lovelace", "Zanzibar"],
        "extracted_triples": [
            ["Ada Lovelace", "met", "Charles Babbage"],
            ["ada lovelace", "lived in", "LONDON"],
            ["Ada Lovelace", "visited", "Zanzibar"],
            ["Ada Lovelace", "met"],
            ["Ada Lovelace", "met", "Charles Babbage", "twice"],
            ["Ada Lovelace", None, "London"],
            "no triple",
        ],
    },
    {
        "idx": "chunk-1",
        "passage": "Grace Hopper\nGrace Hopper was born in 1906 in New York.",
        "extracted_triples": [["Grace Hopper", "born in", 1906]],
    },
]
"""As HippoRAG keeps them: its first form, and that of its second version."""


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none") as memory:
        yield memory


async def _load(memory: Memory, name: str, content: Any) -> ExtractionReport:
    """Import a file of that name beside the memory."""
    path = Path(memory.settings.memory).with_name(name)
    text = content if isinstance(content, str) else json.dumps(content)
    write(path, text.encode())
    return await memory.load_openie(path)


async def test_hipporag_results_become_a_memory_that_can_be_searched(memory: Memory) -> None:
    report = await _load(memory, "openie.json", {"docs": DOCS, "avg_ent_chars": float("nan")})
    assert report == ExtractionReport(
        documents=2,
        attached=0,
        segments=2,
        entities=3,
        triples=3,
        absent_entities=1,
        absent_triples=1,
        malformed=4,
    )
    id_ = hashlib.sha256(str(DOCS[0]["text"]).encode()).hexdigest()[:16]
    titles = {info.id: info.title for info in await memory.documents()}
    assert titles == {"chunk-1": "", id_: "Ada"}
    ada = await memory.entity("Ada Lovelace")
    described = {fact.description for relation in ada.relations for fact in relation.facts}
    assert described == {"Ada Lovelace met Charles Babbage", "ada lovelace lived in LONDON"}
    assert set(ada.neighbours.values()) == {"Charles Babbage", "London"}
    hits = await memory.search("Whom did Ada Lovelace meet?", k=1)
    assert hits[0].title == "Ada"
    status = await memory.status()
    assert (dict(status.states), status.problems) == ({"ok": 2}, ())


async def test_a_passage_without_a_text_is_left_out_and_reported(memory: Memory) -> None:
    report = await _load(memory, "a.json", {"docs": [*DOCS, {"title": "x", "text": "  "}]})
    assert report.documents == 2
    assert report.left_out == ("record 3: it has no text",)


async def test_the_same_file_again_changes_nothing(memory: Memory) -> None:
    await _load(memory, "a.json", {"docs": DOCS})
    before = await memory.status()
    again = await _load(memory, "a.json", {"docs": DOCS})
    assert (again.documents, again.attached, again.segments) == (0, 2, 0)
    assert await memory.status() == before


async def test_passages_that_were_added_before_are_found_by_their_text(memory: Memory) -> None:
    await memory.add({"title": "Ada", "text": DOCS[0]["text"]})
    before = await memory.entity("Ada Lovelace")
    report = await _load(memory, "a.json", {"docs": DOCS[:1]})
    assert (report.documents, report.attached, report.segments) == (0, 1, 1)
    after = await memory.entity("Ada Lovelace")
    facts = [fact for relation in after.relations for fact in relation.facts]
    assert {f.description for f in facts} > {
        f.description for relation in before.relations for f in relation.facts
    }
    ledger = await memory._session.store.ledger("default")
    assert [row.reasoner.endswith(" + openie") for row in ledger] == [True]
    assert (await memory.add({"title": "Ada", "text": DOCS[0]["text"]})).unchanged


TRIPLES = {
    "t.tsv": "Bob\tknows\tAnn\ta\nAnn\tlives in\tOslo\tb\n",
    "named.tsv": "subject\trelation\tobject\tpassage id\nBob\tknows\tAnn\ta\n"
    "Ann\tlives in\tOslo\tb",
    "headed.tsv": "subject\trelation\tobject\tpassage\r\nBob\tknows\tAnn\ta\r\n"
    "Ann\tlives in\tOslo\tb",
    "t.jsonl": '["Bob","knows","Ann","a"]\n\n'
    '{"subject":"Ann","relation":"lives in","object":"Oslo","passage":"b"}\n',
    "t.json": '[["Bob","knows","Ann","a"],'
    '{"subject":"Ann","relation":"lives in","object":"Oslo","passage_id":"b"}]',
    "unnamed": '["Bob","knows","Ann","a"]\n["Ann","lives in","Oslo","b"]',
    "plain": "\ufeffBob\tknows\tAnn\ta\nAnn\tlives in\tOslo\tb",
}


@pytest.mark.parametrize("name", TRIPLES)
async def test_plain_triples_attach_to_documents_by_id(memory: Memory, name: str) -> None:
    await memory.add(
        [{"id": "a", "text": "Bob greets Ann."}, {"id": "b", "text": "Ann is in Oslo."}]
    )
    report = await _load(memory, name, TRIPLES[name])
    assert (report.documents, report.attached, report.triples) == (0, 2, 2)
    ann = await memory.entity("Ann")
    described = {fact.description for relation in ann.relations for fact in relation.facts}
    assert described >= {"Bob knows Ann", "Ann lives in Oslo"}


async def test_triples_attach_to_a_segment_by_its_id(tmp_path: Path) -> None:
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none", segment_tokens=16) as memory:
        text = "Ann met Bob at the old quay. " * 3
        await memory.add({"id": "d", "text": text})
        ids = [hit.segment_id for hit in await memory.search("quay")]
        assert len(ids) > 1
        report = await _load(memory, "t.jsonl", json.dumps(["Ann", "trusts", "Bob", ids[-1]]))
        assert report.triples == 1
        ann = await memory.entity("Ann")
        stated = [f.segment_id for r in ann.relations for f in r.facts if "trusts" in f.description]
        assert stated == [ids[-1]]


async def test_a_file_may_carry_passages_and_triples_about_them(memory: Memory) -> None:
    lines = [
        ["Bob", "knows", "Ann", "p1"],
        {"id": "p1", "title": "T", "text": "Bob greets Ann."},
        {"subject": "Ann", "relation": "greets", "object": "Bob", "passage": "p1"},
    ]
    report = await _load(memory, "t.jsonl", "\n".join(json.dumps(line) for line in lines))
    assert (report.documents, report.triples) == (1, 2)
    assert (await memory.document("p1")).title == "T"


async def test_a_long_passage_is_cut_and_each_triple_stands_where_its_ends_do(
    tmp_path: Path,
) -> None:
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none", segment_tokens=24) as memory:
        between = "Nothing else is said of anybody at all in these many words. " * 4
        text = f"Ann met Bob in Oslo. {between} Cid met Dot in Rome at last."
        triples = [["Ann", "met", "Bob"], ["Cid", "met", "Dot"], ["Ann", "met", "Dot"]]
        doc = {"idx": "d", "text": text, "extracted_triples": triples}
        report = await _load(memory, "t.json", [doc])
        assert (report.triples, report.absent_triples) == (2, 1)
        assert report.segments > 2
        texts = {
            s.id: s.text for s in await memory._session.store.segments("default", documents=["d"])
        }
        for name in ("Ann", "Cid"):
            view = await memory.entity(name)
            assert all(name in texts[f.segment_id] for r in view.relations for f in r.facts)


BAD = {
    "short.tsv": ("Bob\tknows\tAnn\ta\nBob\tknows\tAnn\n", "line 2: it has 3 fields, not 4"),
    "long.jsonl": ('["Bob","knows","Ann","a","b"]', "line 1: it has 5 fields"),
    "long.json": ('[["Bob","knows","Ann","a"],["Bob"]]', "record 2: it has 1 field,"),
    "unknown.tsv": ("Bob\tknows\tAnn\ta\nBob\tknows\tAnn\tnowhere\n", "line 2: .* 'nowhere'"),
    "empty.tsv": ("Bob\t \tAnn\ta\n", "line 1: its relation is empty"),
    "type.jsonl": ('["Bob",["x"],"Ann","a"]', "line 1: its relation is not text"),
    "truth.jsonl": ('["Bob",true,"Ann","a"]', "line 1: its relation is not text"),
    "missing.jsonl": ('{"subject":"Bob","object":"Ann","passage":"a"}', "its relation is not text"),
    "field.jsonl": (
        '{"subject":"B","relation":"r","object":"A","passage":"a","score":1}',
        "'score', which a triple",
    ),
    "cut.jsonl": ('["Bob","knows","Ann","a"]\n["Bob",\n', "line 2: it is not JSON"),
    "cut.json": ('[["Bob","knows",\n"Ann"', "line 2: it is not JSON"),
    "number.json": ("[5]", "record 1: it is a int"),
    "word.json": ('"x"', "its beginning: it is a str"),
    "other.json": ('{"docs": 5}', "its beginning: it is not a passage"),
    "nothing.json": ("[]", "contains no passage"),
    "nothing.tsv": ("\n\n", "contains no passage"),
    "textless.json": ('{"docs": [{"idx": "x", "passage": 5}]}', "record 1: it has no text"),
    "blank.json": ('[{"text": "  "}]', "record 1: it has no text"),
    "list.json": ('[{"text": "x", "extracted_triples": {}}]', "extracted_triples are not a list"),
    "id.json": ('[{"text": "x", "idx": [1]}]', "its id is not text"),
    "longid.json": (json.dumps([{"text": "x", "idx": "x" * 2000}]), "1 to 1,000 characters"),
    "other-text.json": ('[{"text": "x", "idx": "a"}]', "'a' already exists with another text"),
    "twice.json": ('[{"text":"x","idx":"n"},{"text":"y","idx":"n"}]', "record 2: document 'n'"),
    "deep.json": ("[" * 100_000, "cannot be read"),
    "digits.json": ("[" + "9" * 5000 + "]", "cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
async def test_a_wrong_record_is_named_and_nothing_is_written(memory: Memory, name: str) -> None:
    await memory.add({"id": "a", "text": "Bob greets Ann."})
    before = await memory.status()
    content, why = BAD[name]
    with pytest.raises(BadImport, match=why) as caught:
        await _load(memory, name, content)
    assert "\n" not in str(caught.value)
    assert await memory.status() == before


async def test_unreadable_parts_are_reported(memory: Memory, tmp_path: Path) -> None:
    write(tmp_path / "latin.tsv", "Bj\xf6rn\tknows\tAnn\ta".encode("latin-1"))
    for name, why in {
        "latin.tsv": "not UTF-8",
        "missing": "No such file",
        ".": "Is a directory",
    }.items():
        with pytest.raises(BadImport, match=why):
            await memory.load_openie(tmp_path / name)
    assert await memory.namespaces() == []


async def test_triples_for_a_memory_that_is_not_there_make_none(memory: Memory) -> None:
    with pytest.raises(BadImport, match="no document or segment 'a'"):
        await _load(memory, "t.tsv", "Bob\tknows\tAnn\ta\n")
    assert await memory.namespaces() == []


async def test_an_import_that_was_stopped_continues(memory: Memory) -> None:
    store: Any = memory._session.store

    async def fail(*args: Any) -> None:
        raise QrmemError("gone")

    store.record = fail
    with pytest.raises(QrmemError, match="gone"):
        await _load(memory, "a.json", {"docs": DOCS})
    del store.record
    report = await _load(memory, "a.json", {"docs": DOCS})
    assert (report.attached, report.segments, report.triples) == (2, 2, 3)
    assert (await memory.status()).problems == ()


async def test_imported_extractions_are_embedded(tmp_path: Path) -> None:
    write(tmp_path / "a.json", json.dumps({"docs": DOCS}).encode())
    store = ReferenceStore()
    embedder = HashEmbedder(8)

    async def no_similar() -> None:
        return None

    deps = Deps(
        store=store,
        info=NamespaceInfo("n", "builtin-v1", 600, embedder.name, embedder.dimension),
        cutter=BuiltinTokenizer(),
        embed=partial(embed_segments, store, "n", embedder),
        similar=no_similar,
        listener=lambda event: None,
    )
    for _ in range(2):
        await import_openie(deps, tmp_path / "a.json")
    assert len(await store.owners("n", "segment")) == len(embedder.embedded) == 2


async def test_a_new_memory_learns_the_length_of_a_servers_vectors(tmp_path: Path) -> None:
    async with serving() as server:
        chosen: dict[str, Any] = {"embed_base_url": server.url, "embed_api_key": "x"}
        place = str(tmp_path / "m.db")
        async with qrmem.open(place, embedder="openai:some", **chosen) as memory:
            await _load(memory, "a.json", {"docs": DOCS})
        async with qrmem.open(place, **chosen) as memory:
            assert (await memory.status()).problems == ()
            assert await memory.reembed("openai:some") == 0


async def test_another_embedder_than_the_recorded_one_is_refused(tmp_path: Path) -> None:
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none") as memory:
        await _load(memory, "a.json", {"docs": DOCS})
    with pytest.raises(MissingError):
        await qrmem.open(str(tmp_path / "m.db"), embedder="openai:x")


@pytest.mark.data
async def test_a_whole_extraction_by_a_language_model_is_read(memory: Memory) -> None:
    folder = os.environ.get("QRMEM_DATA")
    if not folder:
        pytest.skip("QRMEM_DATA is not set")
    path = Path(folder) / "musique" / "hippo_train_openie_gpt35_1890.json"
    report = await memory.load_openie(path)
    assert (report.documents, report.malformed) == (1890, 185)
    assert report.triples + report.absent_triples > 17_000
    assert report.triples > 13_500
    assert report.entities > 17_000
    assert (await memory.status()).problems == ()
