"""The file format: files of version 0.1.0 and later open, and searches in them have results.

They are `data/version-N.db.gz`. To make one of a new version:

    python tests/contract/test_file_format.py
"""

import asyncio
import gzip
import hashlib
import os
import signal
import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import qrmem
from qrmem.errors import MissingError, StoreUnavailable
from qrmem.graphstore.sqlite import OpenMode, SqliteStore
from qrmem.graphstore.sqlite.database_schema import SCHEMA, USUAL, VERSION, migrate

DATA = Path(__file__).with_name("data")
KEPT = DATA / f"version-{VERSION}.db.gz"
FORMAT = (13, "63b26232be46", "f4485a996c53")
"""The version, and the beginnings of the digests of what belongs to it."""
DOCUMENTS = [
    {
        "id": "log",
        "title": "The log",
        "text": "Captain Ahab lost a leg to Moby Dick off Japan. " * 3,
    },
    {"id": "inquiry", "title": "The inquiry", "text": "Captain Ahab met Owen Chase in Nantucket."},
]


def test_a_change_of_the_format_has_a_new_version() -> None:
    tables = "\n".join(line for line in SCHEMA.splitlines() if not line.strip().startswith("--"))
    digests = [hashlib.sha256(part.encode()).hexdigest()[:12] for part in (tables, USUAL)]
    assert (VERSION, *digests) == FORMAT, "raise VERSION, and make a file of it: see the module"


@pytest.mark.parametrize("version", range(7, VERSION + 1))
async def test_a_file_of_any_version_opens_and_answers(tmp_path: Path, version: int) -> None:
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress((DATA / f"version-{version}.db.gz").read_bytes()))
    async with qrmem.open(str(path), embedder="none", model="") as memory:
        hits = await memory.search("Whom did Ahab meet in Nantucket?")
        assert hits[0].document_id == "inquiry"
        answer = await memory.ask("Who lost a leg?")
        assert answer.citations[0].document_id == "log"
        ids = [info.id for info in await memory.documents()]
        assert ids == ["inquiry", "log", "turn-00000001"]
        assert [turn.text for turn in await memory.turns()] == ["The flight is booked."]
        assert {trail.question for trail in await memory.trails()} >= {"Who met Owen Chase?"}
        read = await memory.repair()  # unpacks all that was read out of the texts
        assert read.differences == ()
        await memory.add([{"id": "new", "text": "Ishmael sailed with Captain Ahab."}])
        assert (await memory.search("Who sailed?"))[0].document_id == "new"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process to kill")
async def test_a_file_whose_migration_is_killed_is_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress((DATA / "version-7.db.gz").read_bytes()))
    kills = 0
    while _is_killed(path, kills + 1):
        kills += 1
        assert _version(path) == 7
    assert kills > 20
    assert _version(path) == VERSION
    async with qrmem.open(str(path), embedder="none", model="") as memory:
        assert (await memory.search("Who met Owen Chase?"))[0].document_id == "inquiry"


def _is_killed(path: Path, statement: int) -> bool:
    process = os.fork()
    if not process:
        _die_at(path, statement)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


def _die_at(path: Path, statement: int) -> None:
    """Kill this process when it has brought a file up to some statement."""
    begun = 0

    def seen(_: str) -> None:
        nonlocal begun
        begun += 1
        if begun >= statement:
            os.kill(os.getpid(), signal.SIGKILL)

    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA cache_size = 1")  # so that pages are written before the end
    db.set_trace_callback(seen)
    migrate(db)
    os._exit(0)


def _version(path: Path) -> int:
    db = sqlite3.connect(path)
    (version,) = db.execute("PRAGMA user_version").fetchone()
    db.close()
    return int(version)


async def test_an_old_file_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    path.write_bytes(gzip.decompress((DATA / "version-7.db.gz").read_bytes()))
    with pytest.raises(MissingError, match="older qrmem and is read-only; open it once"):
        await SqliteStore.open(path, OpenMode(read_only=True))
    assert _version(path) == 7


async def _make(path: Path) -> None:
    async with qrmem.open(str(path), embedder="none", model="") as memory:
        await memory.add(DOCUMENTS)
        await memory.add_turn("user", "The flight is booked.")
        await memory.merge("Owen Chase", "Captain Ahab")
        await memory.ask("Who met Owen Chase?")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        made = Path(folder) / "made.db"
        asyncio.run(_make(made))
        KEPT.parent.mkdir(exist_ok=True)
        KEPT.write_bytes(gzip.compress(made.read_bytes(), mtime=0))


async def test_an_open_file_that_a_newer_qrmem_migrates_is_not_changed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "m.db"
    async with qrmem.open(str(path), embedder="none") as memory:
        await memory.add({"id": "d", "text": "Ann met Bob in Oslo."})
        with sqlite3.connect(path) as newer:
            newer.execute(f"PRAGMA user_version = {VERSION + 1}")
        before = newer.execute("SELECT count(*) FROM document").fetchone()
        with pytest.raises(StoreUnavailable, match="migrated by a newer qrmem while"):
            await memory.add({"id": "e", "text": "Cid met Dot in Rome."})
        with pytest.raises(StoreUnavailable, match="open it again with that version"):
            await memory.search("Who met Bob?")
        assert newer.execute("SELECT count(*) FROM document").fetchone() == before
        newer.close()
