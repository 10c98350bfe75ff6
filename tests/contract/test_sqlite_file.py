"""The SQLite file beyond the contract: opening, locks, full disks, other processes."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from contract.reference import ReferenceStore
from contract.store_process import start
from contract.suite.samples import INFO, add, contents, matching, series, text

import qrmem
from qrmem.config import Settings
from qrmem.errors import MissingError, NotFound, QrmemError, StoreUnavailable, UsageError
from qrmem.graph.merging import refresh_names
from qrmem.graphstore import GraphStore, open_store
from qrmem.graphstore.protocol import ViewUpdate
from qrmem.graphstore.sqlite import OpenMode, SqliteStore, full_text
from qrmem.graphstore.sqlite.connection import PAGE_SIZE
from qrmem.graphstore.sqlite.database_schema import SCHEMA, VERSION, make
from qrmem.types import LedgerRow

NOBODY = 65534
SECRET = "xanadu"


async def _open(path: Path, *, create: bool = True) -> GraphStore:
    return await open_store(str(path), Settings(), create=create)


async def _filled(path: Path) -> None:
    store = await _open(path)
    await add(store, "n", text("d", "Ann met Bob "))
    await store.close()


# --- opening -------------------------------------------------------------------------------------


@pytest.mark.parametrize("uri", ["{}", "sqlite://{}"])
async def test_a_memory_is_found_again_by_path(tmp_path: Path, uri: str) -> None:
    path = tmp_path / "a b?c#d%20é.db" if uri == "{}" else tmp_path / "plain.db"
    await _filled(path)
    store = await open_store(uri.format(path), Settings(), create=False)
    assert [row.key for row in await store.names("n")] == ["Ann", "Bob"]
    assert store.location == str(path)
    assert not store.is_read_only
    await store.close()
    assert _names(tmp_path) == [path.name]


async def test_a_missing_memory_is_not_made_unless_asked(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        await _open(tmp_path / "missing.db", create=False)
    with pytest.raises(NotFound):
        await open_store(f"sqlite://{tmp_path}/missing.db?mode=ro", Settings())
    with pytest.raises(UsageError, match="no folder"):
        await _open(tmp_path / "no" / "folder.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(NotFound):
        await _open(tmp_path / "empty.db", create=False)
    assert _names(tmp_path) == ["empty.db"]
    assert (tmp_path / "empty.db").stat().st_size == 0


async def test_an_empty_file_becomes_a_memory(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    await _filled(tmp_path / "empty.db")


@pytest.mark.parametrize(
    "uri",
    ["", "sqlite://", "mongodb://host/x", "sqlite://a.db?mode=rwx", "sqlite://a.db?cache=shared"],
)
async def test_an_address_that_makes_no_sense_is_refused(uri: str) -> None:
    with pytest.raises(UsageError):
        await open_store(uri, Settings())


async def test_a_file_that_is_not_a_memory_is_refused_and_not_changed(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("This is a text, and a rather long one. " * 200)
    (tmp_path / "short.db").write_bytes(b"\x00")
    (tmp_path / "folder.db").mkdir()
    foreign = sqlite3.connect(tmp_path / "foreign.db")
    foreign.execute("CREATE TABLE bookmarks (url TEXT)")
    foreign.close()
    foreign = sqlite3.connect(tmp_path / "unused.db")
    foreign.execute(f"PRAGMA user_version = {VERSION}")
    foreign.close()
    for name in ("text.db", "short.db", "folder.db", "foreign.db", "unused.db"):
        path = tmp_path / name
        before = path.read_bytes() if path.is_file() else None
        with pytest.raises(UsageError) as caught:
            await _open(path)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)
        assert (path.read_bytes() if path.is_file() else None) == before
    assert len(_names(tmp_path)) == 5


async def test_a_damaged_file_is_distinguished_from_an_absent_one(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await _filled(path)
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 50_000)
    with pytest.raises(QrmemError) as caught:
        await _open(path)
    assert "\n" not in str(caught.value)


async def test_a_page_that_is_damaged_is_found_by_looking_through_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await _filled(path)
    store = await _open(path)
    await store.check()
    await store.close()
    db = sqlite3.connect(path)
    (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'call'").fetchone()
    db.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * PAGE_SIZE)
        file.write(b"\xff" * PAGE_SIZE)
    store = await _open(path)
    assert await store.documents("n")
    with pytest.raises(StoreUnavailable, match=r"damaged.*`qrmem export`"):
        await store.check()
    await store.close()


@pytest.mark.parametrize(("version", "other"), [(VERSION + 1, "a newer"), (6, "an older")])
async def test_a_file_of_another_version_is_refused_and_not_changed(
    tmp_path: Path, version: int, other: str
) -> None:
    path = tmp_path / "a.db"
    await _filled(path)
    db = sqlite3.connect(path)
    db.execute(f"PRAGMA user_version = {version}")
    db.close()
    before = path.read_bytes()
    with pytest.raises(MissingError, match=f"made by {other} qrmem; export its memories"):
        await _open(path)
    assert path.read_bytes() == before


def test_tables_are_made_once_and_whole() -> None:
    db = sqlite3.connect(":memory:", isolation_level=None)
    with pytest.raises(sqlite3.OperationalError):
        make(db, f"{SCHEMA} INSERT INTO nowhere VALUES (1);")
    assert not db.execute("SELECT 1 FROM sqlite_master").fetchall()
    make(db)
    make(db)
    assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)
    db.close()


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = await _open(tmp_path / "a.db")
    await store.close()
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.namespaces()


def test_opening_and_listing_load_no_heavy_package(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from qrmem.config import Settings\n"
        "from qrmem.graphstore import open_store\n"
        "async def main():\n"
        f"    store = await open_store({str(tmp_path / 'a.db')!r}, Settings())\n"
        "    await store.documents('n'); await store.list_entities('n'); await store.close()\n"
        "asyncio.run(main())\n"
        "heavy = {'numpy', 'networkx', 'neo4j', 'pydantic', 'langgraph', 'openai', 'scipy'}\n"
        "assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()\n"
    )
    root = str(Path(__file__).parents[2])
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": root})


# --- read-only -----------------------------------------------------------------------------------


async def test_a_memory_opened_for_reading_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await _filled(path)
    before = path.read_bytes()
    store = await open_store(f"sqlite://{path}?mode=ro", Settings())
    assert store.is_read_only
    everything = await contents(store, "n")
    assert everything["counts"]["entities"] == 2
    assert await store.create_namespace("n", INFO) == await store.namespace("n")
    with pytest.raises(StoreUnavailable, match="read-only"):
        await store.create_namespace("m", INFO)
    with pytest.raises(StoreUnavailable, match="read-only"):
        await store.apply("n", 1, ViewUpdate())
    with pytest.raises(StoreUnavailable, match="read-only"):
        await store.delete_documents("n", "d")
    assert await contents(store, "n") == everything
    await store.close()
    assert path.read_bytes() == before


async def test_a_reader_sees_concurrent_commits(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await _filled(path)
    writer = await _open(path)
    reader = await open_store(f"sqlite://{path}?mode=ro", Settings())
    await add(writer, "n", text("e", "Cy ran "))
    assert [row.key for row in await reader.names("n")] == ["Ann", "Bob", "Cy"]
    await reader.close()
    await writer.close()


@pytest.mark.parametrize(
    ("file_mode", "folder_mode"), [(0o444, 0o755), (0o644, 0o555), (0o444, 0o555)]
)
async def test_a_file_or_folder_that_may_not_be_written_is_read(
    open_folder: Path, file_mode: int, folder_mode: int
) -> None:
    path = open_folder / "a.db"
    await _filled(path)
    _protect(path, file_mode, folder_mode)
    process = start("look", path, user=0 if os.geteuid() else NOBODY)
    out, _ = process.communicate()
    assert out.split() == ["True", "Ann,Bob", "StoreUnavailable"]
    assert _names(open_folder) == ["a.db"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Yield a folder that every user of the machine may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


def _protect(path: Path, file_mode: int, folder_mode: int) -> None:
    path.chmod(file_mode)
    path.parent.chmod(folder_mode)


def _names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


# --- other connections and processes -------------------------------------------------------------


async def test_a_lock_that_stays_names_who_holds_it_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await _filled(path)
    store = await SqliteStore.open(path, OpenMode(timeout=0.05))
    before = await contents(store, "n")
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match=f"locked by (process {os.getpid()}|another)"):
        await store.delete_documents("n", "d")
    assert await contents(store, "n") == before
    other.execute("ROLLBACK")
    other.close()
    await store.delete_documents("n", "d")
    assert (await store.counts("n"))["documents"] == 0
    await store.close()


async def test_a_second_memory_of_one_process_leaves_the_first_one_its_locks(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.db"
    await _filled(path)
    inode = f":{path.stat().st_ino} "

    def locks() -> list[str]:
        mine = Path("/proc/locks").read_text().splitlines()
        return [line.split()[3] for line in mine if inode in line and f" {os.getpid()} " in line]

    first = await _open(path)
    assert locks()
    second = await _open(path)
    assert locks()
    await second.close()
    assert locks()
    await first.close()
    assert not locks()


async def test_the_event_loop_runs_while_a_write_waits_for_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await _filled(path)
    store = await _open(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    write = asyncio.create_task(store.delete_documents("n", "d"))
    for _ in range(20):
        await asyncio.sleep(0.001)
    assert not write.done()
    other.execute("ROLLBACK")
    other.close()
    await write
    await store.close()


async def test_processes_may_open_create_and_add_to_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    writers = ("dee", "eve", "fay")
    processes = [start("add", path, writer) for writer in writers]
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0, 0, 0]
    store = await _open(path, create=False)
    alone = ReferenceStore()
    given = [each for writer in writers for each in series(writer)]
    await add(alone, "n", *given)
    found, expected = await contents(store, "n"), await contents(alone, "n")
    for part in (
        "documents",
        "segments",
        "names",
        "entities",
        "facts",
        "index",
        "counts",
    ):
        assert found[part] == expected[part], part
    assert {row.state for row in found["ledger"]} == {"ok"}
    info = await store.namespace("n")
    assert info is not None
    assert info.revision == len(given)
    await store.close()


async def test_recorded_exchanges_outlive_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    process = start("record", path)
    assert process.stdout is not None
    said = [process.stdout.readline().strip() for _ in range(50)]
    process.send_signal(signal.SIGKILL)
    said += process.communicate()[0].split()
    store = await _open(path, create=False)
    rows = {row.segment_id: row.state for row in await store.ledger("n")}
    assert {rows[id_] for id_ in said[:-1]} == {"ok"}
    found = {row.segment_id for row in await store.contributions("n", "d")}
    assert found == {id_ for id_, state in rows.items() if state == "ok"}
    await store.close()


# --- what is deleted ----------------------------------------------------------------------------


def test_thousands_of_deletions_leave_an_index_that_can_be_read() -> None:
    db = sqlite3.connect(":memory:", isolation_level=None)
    make(db)
    db.execute("INSERT INTO namespace (num, name, tokenizer, segment_tokens, embedder, dimension)"
               " VALUES (1, 'n', 't', 600, 'none', 0)")  # fmt: skip
    for number in (1, 2):
        db.execute(
            "INSERT INTO document VALUES (?, 1, ?, '', '{}', '[]', 0, '', '', '')",
            (number, f"d{number}"),
        )
        db.execute(
            "INSERT INTO segment VALUES (?, 1, ?, ?, 0, 0, 0, 0, '')",
            (number, number, f"s{number}"),
        )
    full_text.add(db, 1, {1: {f"kept{n}": 1 for n in range(2000)}})  # of several pages
    for n in range(1100):
        full_text.add(db, 1, {2: {f"secret{n}": 1}})
        full_text.drop(db, 1, [2])
        full_text.forget(db)
    db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
    assert full_text.matching(db, "n", [["kept7"]], 10) == ["s1"]
    blocks = b"".join(block for (block,) in db.execute("SELECT block FROM words_data"))
    assert b"secret" not in blocks
    db.close()


async def test_namespaces_share_their_tables_and_a_deleted_one_leaves_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    store = await _open(path)
    await add(store, "n", text("d", "Ann met Bob ", title="Kept"))
    tables = _tables(path)
    odd = [f"n{sign}{SECRET}" for sign in "'\"%_*?"]
    for ns in odd:
        await add(store, ns, text("d", f"Ann met {SECRET} ", title=SECRET))
    assert _tables(path) == tables
    for ns in odd:
        assert await matching(store, ns, [[SECRET, "ann"]], 9)
        await store.delete_namespace(ns)
    assert await matching(store, "n", [["ann"]], 9)
    await store.delete_namespace("n")  # the last one with words goes another way
    await store.clean()
    assert not any(SECRET.encode() in path.with_name(n).read_bytes() for n in _names(tmp_path))
    await add(store, "n", text("d", "Ann met Bob "))
    assert len(await matching(store, "n", [["ann"]], 9)) == 1
    await store.check()
    await store.close()


async def test_other_namespaces_do_not_change_the_order(tmp_path: Path) -> None:
    store = await _open(tmp_path / "a.db")
    # Here "rare" is rare, and in the others together it is common.
    pieces = ["rare words ", *(f"common w{n} " for n in range(9)), "common common common words "]
    await add(store, "n", text("d", *pieces))
    groups = [["rare", "common"]]
    before = list(await matching(store, "n", groups, 99))
    assert len(before) == 11
    for n in range(9):
        await add(store, f"o{n}", text("d", *("rare " * (n + k) for k in range(1, 20))))
    assert list(await matching(store, "n", groups, 99)) == before
    assert (await store.vocabulary("n", ["rare"])).frequencies == {"rare": 1}
    await store.close()


def _tables(path: Path) -> list[str]:
    db = sqlite3.connect(path)
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master ORDER BY name")]
    db.close()
    return names


async def test_a_deleted_document_is_not_in_the_log_of_an_open_memory_nor_in_a_repaired_file(
    tmp_path: Path,
) -> None:
    path, words = tmp_path / "a.db", [f"Zanzi{n * 7919 % 2000:04}" for n in range(2000)]
    kept = {"id": "kept", "text": "Ada Lovelace wrote to Charles Babbage."}
    secret = [
        {"id": f"d{n}", "text": f"{' met '.join(words[n : n + 20])} at home."}
        for n in range(0, 2000, 20)
    ]
    async with qrmem.open(str(path), embedder="none", model="") as memory:
        await memory.add(secret[:50])
        await memory.add([kept, *secret[50:]])
        log = path.with_name("a.db-wal")
        assert b"zanzi" in log.read_bytes().lower()
        await memory.delete(*(one["id"] for one in secret))
        assert b"zanzi" not in log.read_bytes().lower()
        size = path.stat().st_size
        await memory.repair()
        assert path.stat().st_size < size / 2
        assert b"zanzi" not in path.read_bytes().lower()
        assert (await memory.search("Who wrote?"))[0].document_id == "kept"


async def test_replaced_and_pruned_texts_are_not_in_the_log(
    tmp_path: Path,
) -> None:
    log = tmp_path / "a.db-wal"
    secret = "Ada Lovelace met Zanzibarius in Oslo."
    async with qrmem.open(str(tmp_path / "a.db"), embedder="none", model="") as memory:
        await memory.add({"id": "a", "text": secret})
        assert b"zanzibarius" in log.read_bytes().lower()
        await memory.add({"id": "a", "text": "Ada Lovelace met nobody."}, update=True)
        assert b"zanzibarius" not in log.read_bytes().lower()
        await memory._session.store.put_cache_entry("default", "reply", "0" * 64, {"text": secret})
        assert log.stat().st_size
        assert await memory.prune() == 1
        assert not log.stat().st_size


# --- no space ------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["removed", "moved", "replaced", "folder", "log"])
async def test_a_file_that_is_no_longer_there_is_not_written(tmp_path: Path, how: str) -> None:
    path = tmp_path / "m" / "m.db"
    path.parent.mkdir()
    await _filled(tmp_path / "other.db")
    store = await _open(path)
    await add(store, "n", text("d", "Ann met Bob "))
    if how == "removed":
        path.unlink()
    elif how == "moved":
        path.rename(tmp_path / "m" / "n.db")
    elif how == "replaced":
        (tmp_path / "other.db").replace(path)
    elif how == "log":
        path.with_name("m.db-wal").unlink()  # another program would begin one of its own
    else:
        path.parent.rename(tmp_path / "elsewhere")
    with pytest.raises(StoreUnavailable, match="moved, removed or replaced while"):
        await add(store, "n", text("e", "Cid met Dot "))
    with pytest.raises(StoreUnavailable, match="nothing more is written"):
        await store.names("n")
    with pytest.raises(StoreUnavailable):
        async with store.snapshot() as snapshot:
            await snapshot.names("n")
    await store.close()


async def test_a_file_that_is_put_back_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    store = await _open(path)
    await add(store, "n", text("d", "Ann met Bob "))
    path.rename(tmp_path / "n.db")
    with pytest.raises(StoreUnavailable, match="put it back"):
        await add(store, "n", text("e", "Cid met Dot "))
    (tmp_path / "n.db").rename(path)
    await add(store, "n", text("e", "Cid met Dot "))
    await store.close()
    store = await _open(path)
    assert set(await store.document_ids("n")) == {"d", "e"}
    await store.close()


async def test_a_full_disk_stops_a_write_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    await _filled(path)
    pages = path.stat().st_size // 8192
    small = await SqliteStore.open(path, OpenMode(pragmas={"max_page_count": pages + 10}))
    before = await contents(small, "n")
    big = text("big", *[f"piece {n} " * 500 for n in range(100)])
    with pytest.raises(StoreUnavailable, match="no space left"):
        await small.put_documents("n", [big])
    assert await contents(small, "n") == before
    await small.record("n", [(LedgerRow((await small.ledger("n"))[0].segment_id, "ok"), None)])
    await small.close()
    store = await _open(path)
    await store.put_documents("n", [big])
    assert [row.state for row in await store.ledger("n", "d")] == ["ok"]
    await store.close()


async def test_a_deleted_document_leaves_no_word_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = await _open(path)
    secret = text("secret", *[f"Zanzibarius met Quillfeather{n} " for n in range(50)])
    await add(store, "n", text("d", "Ann met Bob "), secret)
    await store.put_cache_entry(
        "n", "reply", "k", {"reply": "Zanzibarius"}, segments=[secret[1][0].id]
    )
    await store.close()
    assert b"Zanzibarius" in path.read_bytes()
    store = await _open(path)
    await store.delete_documents("n", "secret")
    await refresh_names(store, "n")  # as `Memory.delete` does
    await store.close()
    found = path.read_bytes().lower()
    assert b"zanzibarius" not in found
    assert b"quillfeather" not in found
    assert _names(tmp_path) == ["a.db"]


async def test_what_is_written_during_a_snapshot_is_seen_by_the_next_one(tmp_path: Path) -> None:
    store = await _open(tmp_path / "a.db")
    await add(store, "n", text("d", "Ann met Bob "))
    async with store.snapshot() as first:
        assert [row.key for row in await first.names("n")] == ["Ann", "Bob"]
        await add(store, "n", text("e", "Cy met Dee "))
        async with store.snapshot() as second:
            assert [row.key for row in await second.names("n")] == ["Ann", "Bob", "Cy", "Dee"]
            assert [row.key for row in await first.names("n")] == ["Ann", "Bob"]
    with pytest.raises(StoreUnavailable, match="read-only"):
        await first.delete_documents("n", "d")
    await store.close()


async def test_in_memory_writes_wait_until_the_last_snapshot_ends() -> None:
    store = await open_store("memory://", Settings())
    await add(store, "n", text("d", "Ann met Bob "))
    async with store.snapshot() as first:
        async with store.snapshot():
            writing = asyncio.create_task(store.delete_documents("n", "d"))
            await asyncio.sleep(0.01)
        assert [info.id for info in await first.documents("n")] == ["d"]
        assert not writing.done()
    await writing
    assert list(await store.documents("n")) == []
    await store.close()


async def test_in_memory_snapshots_that_begin_later_wait_for_a_write() -> None:
    store = await open_store("memory://", Settings())
    await add(store, "n", text("d", "Ann met Bob "))

    async def later() -> list[str]:
        async with store.snapshot() as second:
            return [info.id for info in await second.documents("n")]

    async with asyncio.timeout(30), asyncio.TaskGroup() as group, store.snapshot() as first:
        writing = group.create_task(store.delete_documents("n", "d"))
        await asyncio.sleep(0.01)
        reading = group.create_task(later())
        await asyncio.sleep(0.01)
        # Else writes never come if there is always a search.
        assert not reading.done()
        # A snapshot of the snapshot does not wait: the write waits for it.
        async with first.snapshot() as again:
            assert [info.id for info in await again.documents("n")] == ["d"]
        assert not writing.done()
    assert reading.result() == []
    with pytest.raises(StoreUnavailable, match="read-only"):
        await first.delete_documents("n", "d")
    await store.close()


async def test_a_path_with_a_nul_is_refused_and_no_other_file_is_made(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="contains a NUL character"):
        async with qrmem.open(str(tmp_path / "a\0b.db"), embedder="none"):
            pass
    assert os.listdir(tmp_path) == []
