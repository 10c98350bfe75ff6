"""Archives on a disk, from one store to another: whole, the same everywhere, or refused."""

import asyncio
import base64
import resource
import sqlite3
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

import pytest
from archives import export_whole, fill, fill_runs, names_in, read, rewritten, sealed, write
from contract.reference import ReferenceStore
from contract.suite.samples import add, contents, text
from servers.openai_server import serving

import qrmem
from qrmem.agents.build_state import silent
from qrmem.config import Settings
from qrmem.errors import (
    BadImport,
    MissingError,
    QrmemError,
    StoreConflict,
    StoreUnavailable,
    UsageError,
)
from qrmem.graphstore import GraphStore, NamespaceInfo, open_store
from qrmem.graphstore.protocol import CacheEntry, CacheKind
from qrmem.graphstore.reads import current_folds
from qrmem.io.archive import export_archive, exporting, import_archive
from qrmem.types import Archived, Contribution, Document, Event, LedgerRow

SAMPLE = Path(qrmem.__file__).parent / "sample" / "harbour.md"


def anything(info: NamespaceInfo) -> NamespaceInfo:
    """Accept every namespace as the archive has it."""
    return info


async def load(store: GraphStore, ns: str, path: Path) -> Archived:
    return await import_archive(store, ns, path, accept=anything, listener=silent)


@pytest.fixture
async def sqlite(tmp_path: Path) -> AsyncIterator[GraphStore]:
    store = await open_store(str(tmp_path / "a.db"), Settings())
    yield store
    await store.close()


@pytest.fixture
async def oracle() -> GraphStore:
    return ReferenceStore()


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return export_whole(tmp_path_factory.mktemp("archive") / "a").read_bytes()


@pytest.fixture
def archive(exported: bytes, tmp_path: Path) -> Path:
    write(tmp_path / "good.qrmem", exported)
    return tmp_path / "good.qrmem"


# --- the same bytes ------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [False, True])
async def test_equal_memories_give_the_same_bytes_from_every_store(
    sqlite: GraphStore, oracle: GraphStore, tmp_path: Path, runs: bool
) -> None:
    for store, order in ((oracle, 1), (sqlite, -1)):
        await fill(store, "n", order=order)
        await fill_runs(store, "n")
        await export_archive(store, "n", tmp_path / f"{order}", runs=runs)
    assert (tmp_path / "1").read_bytes() == (tmp_path / "-1").read_bytes()


@pytest.mark.parametrize("runs", [False, True])
async def test_an_imported_memory_is_the_memory_that_was_exported(
    sqlite: GraphStore, oracle: GraphStore, tmp_path: Path, runs: bool
) -> None:
    await fill(oracle, "n")
    if runs:
        await fill_runs(oracle, "n")
    done = await export_archive(oracle, "n", tmp_path / "one", runs=runs)
    assert await load(sqlite, "other", tmp_path / "one") == done
    assert await contents(sqlite, "other") == await contents(oracle, "n")
    assert await _kept(sqlite, "other") == await _kept(oracle, "n")
    again = await export_archive(sqlite, "other", tmp_path / "two", runs=runs)
    assert again == replace(done, path=str(tmp_path / "two"))
    assert (tmp_path / "two").read_bytes() == (tmp_path / "one").read_bytes()
    info = await sqlite.namespace("other")
    assert info is not None
    assert info.importing == ""


async def _kept(store: GraphStore, ns: str) -> list[CacheEntry]:
    """Return the stored data, with only those folded descriptions that the facts use."""
    current = await current_folds(store, ns)
    found: list[CacheEntry] = []
    for kind in cast("tuple[CacheKind, ...]", get_args(CacheKind)):
        keys = await store.cache_keys(ns, kind) if kind != "code" else ()
        found += await store.cache_entries(
            ns, kind, [k for k in keys if kind != "fold" or k in current]
        )
    assert current & {entry.key for entry in found}
    return found


async def test_without_runs_nothing_tells_when_or_how_often_the_memory_was_asked(
    oracle: GraphStore, tmp_path: Path
) -> None:
    await fill(oracle, "n")
    await export_archive(oracle, "n", tmp_path / "before")
    await fill_runs(oracle, "n")
    await export_archive(oracle, "n", tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


async def test_what_is_folded_of_facts_that_changed_is_left_behind(
    oracle: GraphStore, tmp_path: Path
) -> None:
    await fill(oracle, "n")
    await export_archive(oracle, "n", tmp_path / "before")
    segment = (await oracle.segments("n", documents=["b"]))[0]
    await oracle.put_cache_entry(
        "n", "fold", "fold:old", {"description": "x"}, segments=[segment.id]
    )
    await export_archive(oracle, "n", tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


async def test_a_namespace_of_nothing_can_be_moved(oracle: GraphStore, tmp_path: Path) -> None:
    await oracle.create_namespace("n", NamespaceInfo("n", "t", 600))
    done = await export_archive(oracle, "n", tmp_path / "empty")
    assert (done.documents, done.segments, done.entities) == (0, 0, 0)
    await load(oracle, "m", tmp_path / "empty")
    assert await oracle.namespace("m") == NamespaceInfo("m", "t", 600)


# --- a graph that is behind its facts ------------------------------------------------------------


async def test_rows_that_are_not_made_of_the_facts_are_not_imported(
    oracle: GraphStore, tmp_path: Path
) -> None:
    given = text("d", "Ann met Bob ", "Bob left ")
    await add(oracle, "n", given)
    await export_archive(oracle, "n", tmp_path / "stale")
    await load(oracle, "m", tmp_path / "stale")
    counts = await oracle.counts("m")
    assert (counts["segments"], counts["entities"], counts["facts"]) == (2, 0, 0)


async def test_segments_that_were_read_and_not_merged_arrive_so(
    oracle: GraphStore, sqlite: GraphStore, tmp_path: Path
) -> None:
    await fill(oracle, "n")
    segment = (await oracle.segments("n", documents=["unread"]))[0]
    made = Contribution(segment.id, "extraction", questions=("Who?",))
    await oracle.record("n", [(LedgerRow(segment.id, "ok", "", "scripted"), made)])
    await export_archive(oracle, "n", tmp_path / "one")
    await load(sqlite, "n", tmp_path / "one")
    assert await contents(sqlite, "n") == await contents(oracle, "n")


# --- where it may go -----------------------------------------------------------------------------


async def test_a_namespace_that_holds_something_is_not_imported_into(
    archive: Path, oracle: GraphStore
) -> None:
    await add(oracle, "m", text("d", "Ann ran "))
    before = await contents(oracle, "m")
    with pytest.raises(UsageError, match=r"not empty .*--namespace NAME"):
        await load(oracle, "m", archive)
    assert await contents(oracle, "m") == before


async def test_an_empty_namespace_becomes_what_the_archive_says(
    archive: Path, oracle: GraphStore
) -> None:
    await load(oracle, "n", archive)
    await oracle.create_namespace("m", NamespaceInfo("m", "other", 99, "e", 3))
    await load(oracle, "m", archive)
    assert await contents(oracle, "m") == await contents(oracle, "n")


async def test_a_namespace_that_is_not_wanted_is_not_made(
    archive: Path, oracle: GraphStore
) -> None:
    def refuse(info: NamespaceInfo) -> NamespaceInfo:
        assert (info.name, info.embedder, info.dimension) == ("m", "hash", 8)
        raise MissingError("not this embedder")

    with pytest.raises(MissingError):
        await import_archive(oracle, "m", archive, accept=refuse, listener=silent)
    assert await oracle.namespace("m") is None


async def test_an_archive_replaces_an_archive_and_nothing_else(
    archive: Path, oracle: GraphStore, tmp_path: Path
) -> None:
    await load(oracle, "n", archive)
    with pytest.raises(UsageError, match="exists already"):
        await export_archive(oracle, "n", archive)
    await export_archive(oracle, "n", archive, overwrite=True)
    (tmp_path / "memory.db").write_bytes(b"SQLite format 3\x00")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").touch()
    for name, why in {
        "memory.db": "exists and is not an archive",
        "folder": "not a file",
        "no/where": "there is no folder",
    }.items():
        with pytest.raises(UsageError, match=why):
            await export_archive(oracle, "n", tmp_path / name, overwrite=True)
    await export_archive(oracle, "n", tmp_path / "empty")
    assert (tmp_path / "memory.db").read_bytes() == b"SQLite format 3\x00"
    assert names_in(tmp_path) == ["empty", "folder", "good.qrmem", "memory.db"]


async def test_a_memory_that_changes_during_an_export_is_not_exported(
    oracle: GraphStore, tmp_path: Path
) -> None:
    await fill(oracle, "n")
    decide = oracle.document

    async def change(ns: str, document_id: str) -> Document | None:
        await oracle.put_documents(ns, [(Document(f"{document_id}.", id="new"), [])])
        return await decide(ns, document_id)

    oracle.document = change  # type: ignore[method-assign]
    with pytest.raises(StoreConflict, match="export it again"):
        await export_archive(oracle, "n", tmp_path / "torn")
    assert names_in(tmp_path) == []


# --- stopped half-way ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["put_documents", "record", "apply", "put_trail", "put_vectors"])
@pytest.mark.parametrize("error", [QrmemError("gone"), asyncio.CancelledError()])
async def test_an_import_that_fails_leaves_nothing(
    archive: Path, oracle: GraphStore, name: str, error: BaseException
) -> None:
    await load(oracle, "n", archive)

    async def fail(*args: Any, **kwargs: Any) -> None:
        raise error

    setattr(oracle, name, fail)
    with pytest.raises(type(error)):
        await load(oracle, "m", archive)
    assert list(await oracle.namespaces()) == ["n"]


async def test_what_a_killed_import_left_is_started_again(
    archive: Path, oracle: GraphStore, sqlite: GraphStore
) -> None:
    await load(oracle, "n", archive)
    await sqlite.create_namespace("m", NamespaceInfo("m", "t", 9, importing="killed"))
    await sqlite.put_documents("m", [text("half", "Ann ran ")])
    await load(sqlite, "m", archive)
    assert await contents(sqlite, "m") == await contents(oracle, "n")


async def test_one_of_two_concurrent_imports_wins_and_the_memory_is_whole(
    archive: Path, oracle: GraphStore, sqlite: GraphStore
) -> None:
    await load(oracle, "n", archive)
    outcomes = await asyncio.gather(
        *(load(sqlite, "m", archive) for _ in range(3)), return_exceptions=True
    )
    assert [type(each) for each in outcomes].count(Archived) == 1
    assert all(isinstance(each, Archived | QrmemError) for each in outcomes)
    assert await contents(sqlite, "m") == await contents(oracle, "n")


async def test_half_an_archive_is_neither_read_nor_changed(tmp_path: Path) -> None:
    async with qrmem.open(str(tmp_path / "m.db"), embedder="none", namespace="half") as memory:
        store = memory._session.store
        await store.create_namespace(
            "half", NamespaceInfo("half", "builtin-v1", 600, importing="x")
        )
        await store.put_documents("half", [text("d", "Ann ran ")])
        for call in (
            memory.status,
            memory.documents,
            memory.entities,
            memory.merges,
            memory.trail,
            memory.trails,
            lambda: memory.document("d"),
            lambda: memory.entity("Ann"),
            lambda: memory.search("Ann"),
            lambda: memory.ask("Who ran?"),
            lambda: memory.add({"text": "Bob ran."}),
            lambda: memory.delete("d"),
            lambda: memory.merge("a", "b"),
            lambda: memory.reembed("none"),
            lambda: memory.export(tmp_path / "half"),
            lambda: memory.load_openie(tmp_path / "none.tsv"),
        ):
            with pytest.raises(UsageError, match="run the same import again"):
                await call()
        await memory.delete_all()
        assert await memory.namespaces() == []


# --- bad archives --------------------------------------------------------------------------------


async def _is_refused(store: GraphStore, path: Path, why: str) -> None:
    """Check that nothing of an archive is stored, and that one line says why."""
    before = list(await store.namespaces())
    with pytest.raises(BadImport, match=why) as caught:
        await load(store, "m", path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    assert list(await store.namespaces()) == before


async def test_a_cut_archive_is_refused_whole(archive: Path, oracle: GraphStore) -> None:
    whole = read(archive)
    ends = [at + 1 for at in range(len(whole)) if whole[at : at + 1] == b"\n"]
    for length in {0, 1, 9, 100, *ends[:-1][::5], len(whole) - 1, len(whole) - 40}:
        write(archive, whole[:length])
        await _is_refused(oracle, archive, "cut|not a qrmem archive")


async def test_an_altered_archive_is_refused_whole(archive: Path, oracle: GraphStore) -> None:
    whole = read(archive)
    for at in range(80, len(whole), len(whole) // 40):
        other = b"x" if whole[at : at + 1] != b"x" else b"y"
        write(archive, whole[:at] + other + whole[at + 1 :])
        await _is_refused(oracle, archive, "cut or altered|not a qrmem archive|line 1")
    lines = whole.splitlines(keepends=True)
    for changed in (lines[:5] + lines[6:], [*lines[:-1], lines[3], lines[-1]], [*lines, b"x"]):
        write(archive, b"".join(changed))
        await _is_refused(oracle, archive, "cut or altered")


async def test_a_file_of_another_kind_is_distinguished_from_a_damaged_archive(
    oracle: GraphStore, tmp_path: Path
) -> None:
    for name, content in {
        "text": b"Once upon a time\n" * 1000,
        "zip": b"PK\x03\x04" + bytes(5000),
        "gzip": b"\x1f\x8b" + bytes(50),
        "list": b"[1,2]\n",
        "json": b'{"docs":[]}\n',
        "line": b"[" * 1_000_000,
        "empty": b"",
    }.items():
        (tmp_path / name).write_bytes(content)
        await _is_refused(oracle, tmp_path / name, "not a qrmem archive")
    await _is_refused(oracle, tmp_path, "not a regular file")
    await _is_refused(oracle, Path("/dev/zero"), "not a regular file")
    await _is_refused(oracle, tmp_path / "missing", "No such file")


@pytest.mark.parametrize("version", [2, 99, 10**30])
async def test_a_newer_archive_is_refused_with_what_to_do(
    archive: Path, oracle: GraphStore, version: int
) -> None:
    whole = read(archive).replace(b'"version":1', b'"version":%d' % version)
    write(archive, whole.replace(b'"tokenizer"', b'"unheard_of"'))
    with pytest.raises(MissingError, match="upgrade qrmem"):
        await load(oracle, "m", archive)


def _first(lines: list[Any], kind: str) -> Any:
    return next(line[kind] for line in lines if kind in line)


NAN = base64.b64encode(struct.pack("<8f", *[float("nan")] * 8)).decode()

FORGED: Mapping[str, tuple[str, Callable[[list[Any]], Any]]] = {
    "no text": ("document.text is not text", lambda x: _first(x, "document").update(text=5)),
    "no field": ("document has no id", lambda x: _first(x, "document").pop("id")),
    "unknown field": ("'evil' that this", lambda x: _first(x, "document").update(evil=1)),
    "no object": ("segment is not an object", lambda x: x[2].update(segment=[1])),
    "bad id": ("an id has 1 to", lambda x: _first(x, "document").update(id="\x00")),
    "long id": ("an id has 1 to", lambda x: _first(x, "document").update(id="x" * 9999)),
    "half a pair": ("surrogate pair", lambda x: _first(x, "document").update(text="\ud800")),
    "metadata": ("is not text", lambda x: _first(x, "document").update(metadata={"a": [1]})),
    "infinite": ("not a number", lambda x: _first(x, "document").update(metadata={"a": 1e999})),
    "huge number": (
        "not a whole number",
        lambda x: _first(x, "document").update(metadata={"a": 10**30}),
    ),
    "place": ("not in the document", lambda x: _first(x, "segment").update(end=10**6)),
    "backwards": ("not in the document", lambda x: _first(x, "segment").update(start=9, end=3)),
    "fraction": ("not a whole number", lambda x: _first(x, "segment").update(tokens=1.5)),
    "truth": ("not a whole number", lambda x: _first(x, "segment").update(tokens=True)),
    "tokens": ("tokens are", lambda x: _first(x, "segment").update(tokens=-1)),
    "state": ("is not one of", lambda x: _first(x, "segment").update(state="evil")),
    "questions": ("questions is not a list", lambda x: _first(x, "segment").update(questions="x")),
    "kind": ("kind is not one of", lambda x: _first(x, "contribution").update(kind="evil")),
    "stranger": (
        "does not belong to the document",
        lambda x: _first(x, "contribution").update(segment_id="../x"),
    ),
    "base64": ("not base64", lambda x: _first(x, "vector").update(rows=["*"])),
    "short vector": ("do not have 8 numbers", lambda x: _first(x, "vector").update(rows=["AAAA"])),
    "no vector": ("do not have 8 numbers", lambda x: _first(x, "vector").update(rows=[])),
    "NaN vector": (
        "not a number",
        lambda x: _first(x, "vector").update(rows=[NAN]),
    ),
    "two keys": ("one key", lambda x: x[1].update(segment={})),
    "unknown kind": ("no line is called", lambda x: x.insert(1, {"evil": {}})),
    "twice": ("occurs twice", lambda x: x.insert(2, x[1])),
    "order": ("cannot follow", lambda x: x.append(x[1])),
    "no head": ("cannot follow the head", lambda x: x.pop(1)),
    "name twice": (
        "occurs twice",
        lambda x: _first(x, "entity")["names"].append("bob|PERSON"),
    ),
    "runs": ("without runs", lambda x: x[0]["qrmem"].pop("runs")),
    "deep": ("too deeply", lambda x: _first(x, "reply").update(value=_deep(200))),
    "packed": ("has no key like", lambda x: _first(x, "reply").update(key="code:row:x")),
    "fold": ("has no key like", lambda x: _first(x, "reply").update(key="fold:x")),
    "no fold": ("has no key like", lambda x: _first(x, "fold").update(key="x")),
    "folded": ("has no description", lambda x: _first(x, "fold").update(value={})),
    "reply": ("value.text is not text", lambda x: _first(x, "reply")["value"].update(text=5)),
    "cost": ("not a number", lambda x: _first(x, "call").update(cost=float("nan"))),
    "phase": ("is not one of", lambda x: _first(x, "call").update(phase="evil")),
    "dimension": ("dimension is", lambda x: x[0]["qrmem"].update(dimension=2**40)),
    "version": ("version is 0", lambda x: x[0]["qrmem"].update(version=0)),
    "single": ("is no type of", lambda x: x[0]["qrmem"].update(single=["a b"])),
    "single twice": ("are not sorted", lambda x: x[0]["qrmem"].update(single=["A", "A"])),
    "old version": ("not a whole number", lambda x: x[0]["qrmem"].update(version="1")),
}


def _line(lines: list[Any], kind: str) -> Any:
    return next(line for line in lines if kind in line)


def _deep(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"x": value}
    return value


@pytest.mark.parametrize("name", FORGED)
async def test_a_forged_archive_is_refused_in_one_line(
    archive: Path, oracle: GraphStore, name: str
) -> None:
    why, change = FORGED[name]
    forged = rewritten(archive, lambda lines: change(lines) and None)
    await _is_refused(oracle, forged, why)


async def test_a_line_that_is_no_json_is_named(archive: Path, oracle: GraphStore) -> None:
    lines = read(archive).split(b"\n")[:-2]
    for bad in (b"\xff\xfe", b'{"document": ', b"[" * 5000, b'{"call":' + b"9" * 5000 + b"}", b""):
        forged = sealed(archive.with_name("forged"), [*lines[:4], bad, *lines[5:]])
        await _is_refused(oracle, forged, r"line 5: it is (not JSON|nested)")


async def test_words_of_an_archive_are_never_code(archive: Path, sqlite: GraphStore) -> None:
    evil = "'; DROP TABLE segment; --`}) DETACH DELETE n // ../../etc/passwd $ns"

    def change(lines: list[Any]) -> None:
        for line in lines:
            if "document" in line:
                line["document"]["title"] = evil

    await load(sqlite, evil[:200], rewritten(archive, change))
    assert {info.title for info in await sqlite.documents(evil[:200])} == {evil}


# --- data, not choices ---------------------------------------------------------------------------


async def test_a_file_named_by_a_forged_header_is_not_opened(archive: Path, tmp_path: Path) -> None:
    names = {"embedder": "sentence-transformers:evil/model", "tokenizer": "hf:/etc/passwd"}
    forged = rewritten(archive, lambda lines: lines[0]["qrmem"].update(names))
    warned: list[str] = []

    def listen(event: Event) -> None:
        if event.kind == "warning":
            warned.append(str(event.data["message"]))

    async with qrmem.open(str(tmp_path / "m.db"), listener=listen) as memory:
        await memory.load(forged)
        status = await memory.status()
        assert (status.embedder, status.dimension) == ("none", 0)
        assert await memory.search("Who met Bob?")
        assert await memory.add({"id": "later", "text": "Ann met Bob at sea."})
    assert [word in text for word, text in zip(("evil/model", "passwd"), warned, strict=True)]


async def test_an_import_does_not_remove_what_another_has_finished(
    archive: Path, oracle: GraphStore
) -> None:
    """The first import finds the half of a killed one; the second is quicker to take it over."""
    await oracle.create_namespace("m", NamespaceInfo("m", "t", 9, importing="killed"))
    namespace = oracle.namespace
    is_first = True

    async def overtaken(ns: str) -> NamespaceInfo | None:
        nonlocal is_first
        found = await namespace(ns)
        if is_first:
            is_first = False
            await load(oracle, "m", archive)
        return found

    oracle.namespace = overtaken  # type: ignore[method-assign]
    with pytest.raises(StoreConflict):
        await load(oracle, "m", archive)
    assert (await oracle.counts("m"))["documents"] == 4


async def test_an_export_to_a_full_disk_leaves_nothing(oracle: GraphStore, tmp_path: Path) -> None:
    await fill(oracle, "n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        with pytest.raises(StoreUnavailable, match="cannot write"):
            await export_archive(oracle, "n", tmp_path / "a.qrmem")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert names_in(tmp_path) == []


async def test_a_text_that_is_not_what_was_added_is_not_exported(
    sqlite: GraphStore, tmp_path: Path
) -> None:
    await add(sqlite, "n", text("d", "Ann met Bob "))
    db = sqlite3.connect(tmp_path / "a.db")
    db.execute("UPDATE passage SET text = replace(text, 'met', 'hit')")
    db.commit()
    db.close()
    with pytest.raises(StoreUnavailable, match="the text of 'd' is not what was added; add it"):
        await export_archive(sqlite, "n", tmp_path / "a.qrmem")
    assert not (tmp_path / "a.qrmem").exists()


# --- the promise ---------------------------------------------------------------------------------


async def test_an_archive_of_the_first_version_is_read(tmp_path: Path) -> None:
    """The first qrmem with archives wrote this file; it is never written again."""
    settings = Settings(memory=str(tmp_path / "m.db"), embedder="hash")
    async with qrmem.open(settings=settings) as memory:
        done = await memory.load(Path(__file__).parent / "data" / "archive.v1.qrmem")
        assert (done.documents, done.segments, done.entities) == (4, 9, 8)
        status = await memory.status()
        assert (status.embedder, status.dimension) == ("hash", 8)
        assert status.states == {"ok": 7, "partial": 1, "pending": 1}
        ann = await memory.entity("Ann")
        assert {"Bob", "Cid", "Oslo"} <= set(ann.neighbours.values())
        assert (await memory.trail("t")).answer == "Ann"
        assert [m.reason for m in await memory.merges()] == ["user"]


async def test_an_updated_document_leaves_nothing_of_its_old_text(tmp_path: Path) -> None:
    """Not in the summary either, where sentences are quoted."""
    old = SAMPLE.read_text(encoding="utf-8")
    documents = [old, old.replace("Tam Garrick", "Wil Harper").replace("kippers", "porridge")]
    archives = []
    for name, texts in (("updated", documents), ("fresh", documents[1:])):
        settings = Settings(embedder="none")
        async with qrmem.open(str(tmp_path / f"{name}.db"), settings=settings) as memory:
            for each in texts:
                await memory.add({"id": "a", "title": "Harbour", "text": each}, update=True)
            await memory.export(tmp_path / f"{name}.qrmem")
        archives.append((tmp_path / f"{name}.qrmem").read_bytes())
    assert archives[0] == archives[1]


async def test_a_chat_model_s_summary_of_an_updated_document_is_written_again(
    tmp_path: Path,
) -> None:
    text = SAMPLE.read_text(encoding="utf-8")[:6_000]
    async with serving() as server:
        settings = Settings(embedder="none", model="test", base_url=server.url)
        async with qrmem.open(str(tmp_path / "m.db"), settings=settings) as memory:
            for each in (f"Tam Garrick was forgotten. {text}", text):
                await memory.add({"id": "a", "title": "Harbour", "text": each}, update=True)
            (info,) = await memory.documents()
            await memory.export(tmp_path / "m.qrmem")
    assert info.summary
    assert b"forgotten" not in (tmp_path / "m.qrmem").read_bytes()


async def test_an_export_is_of_one_moment_while_others_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    at = "m.db"
    written = exporting._write_documents
    async with (
        qrmem.open(at, embedder="none", model="") as memory,
        qrmem.open(at, embedder="none", model="") as other,
    ):

        async def late(*args: Any) -> int:
            await other.add_turn("user", "Nina keeps a kayak in Oslo.")
            await other.delete("a")
            return await written(*args)

        await memory.add([{"id": id, "text": f"Ann met {id} in Rome."} for id in "abc"])
        await memory.export(tmp_path / "before.qrmem")
        monkeypatch.setattr(exporting, "_write_documents", late)
        monkeypatch.chdir("/")
        await memory.export(tmp_path / "beside.qrmem")
        assert [info.id for info in await memory.documents()] == ["b", "c", "turn-00000001"]
    assert (tmp_path / "beside.qrmem").read_bytes() == (tmp_path / "before.qrmem").read_bytes()
