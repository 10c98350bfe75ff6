"""Names that another process resolves while the rows are written: the same memory, whatever comes.

What comes: the process is lost, the run is cancelled, somebody else writes, the user has decided.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import sent_work
from many_notes import DOCUMENTS, NS, kept, read, share_out_few

import qrmem
from qrmem import apart
from qrmem.apart import Apart
from qrmem.apart.work import name
from qrmem.config import Settings
from qrmem.errors import StoreUnavailable, UsageError
from qrmem.graph.merging import merge_documents
from qrmem.graphstore import open_store
from qrmem.graphstore.sqlite import Opening, SqliteStore
from qrmem.processes import Processes
from qrmem.types import Contribution, LedgerRow, Mention

FEW = DOCUMENTS[:41]
SETTINGS = Settings(segment_tokens=60, embedder="none", processes=2)
Resolved = Callable[..., Awaitable[Any]]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    share_out_few(monkeypatch)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What this process makes alone."""

    async def made(path: Path) -> list[Any]:
        await read(path, FEW, processes=0)
        return await kept(path)

    return asyncio.run(made(tmp_path_factory.mktemp("alone") / "memory.db"))


def around(monkeypatch: pytest.MonkeyPatch, resolved: Callable[..., Awaitable[Any]]) -> None:
    """Have names resolved by a function that is given the usual one first."""
    usual = Apart.resolved

    async def instead(self: Apart, *given: Any) -> Any:
        async def as_usual() -> Any:
            return await usual(self, *given)

        return await resolved(as_usual, self)

    monkeypatch.setattr(Apart, "resolved", instead)


class Held:
    """Names that are resolved when the test lets them be."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.released = asyncio.Event(), asyncio.Event()
        self.processes: list[asyncio.subprocess.Process] = []
        around(monkeypatch, self._resolved)

    async def _resolved(self, as_usual: Resolved, apart: Apart) -> Any:
        assert apart._processes is not None
        self.processes += [served._process for served in apart._processes._all]
        self.asked.set()
        await self.released.wait()
        return await as_usual()


# --- a process that is lost ----------------------------------------------------------------------


async def test_names_that_are_lost_with_a_process_are_resolved_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: list[Any]
) -> None:
    lost: list[int] = []

    async def losing(as_usual: Resolved, apart: Apart) -> Any:
        resolving = asyncio.ensure_future(as_usual())
        await asyncio.sleep(0)
        assert apart._processes is not None
        for served in apart._processes._all:
            served._process.kill()
            lost.append(served._process.pid)
        return await resolving

    around(monkeypatch, losing)
    report = await read(tmp_path / "apart.db", FEW, processes=2)
    assert report.states == {"ok": report.read}
    assert len(lost) == 2
    assert await kept(tmp_path / "apart.db") == alone


async def test_names_that_a_process_cannot_resolve_are_resolved_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: list[Any]
) -> None:
    monkeypatch.setattr(apart, "name", sent_work.refused_above_two)
    await read(tmp_path / "apart.db", FEW, processes=2)
    assert await kept(tmp_path / "apart.db") == alone


# --- a run that is stopped -----------------------------------------------------------------------


async def test_a_run_that_is_cancelled_while_names_are_resolved_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: list[Any]
) -> None:
    path = tmp_path / "apart.db"
    async with await qrmem.open(str(path), settings=SETTINGS) as memory:
        with monkeypatch.context() as patched:
            held = Held(patched)
            adding = asyncio.create_task(memory.add(FEW))
            await held.asked.wait()
            adding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await adding
        assert [process.returncode for process in held.processes] == [-9, -9]
        assert asyncio.all_tasks() == {asyncio.current_task()}
        status = await memory.status()
        assert {problem[2] for problem in status.problems} == {"read, but not merged"}
        assert not await memory.entities()
        report = await memory.add(FEW)
        assert report.read == 0
        assert len(report.resumed) == len(FEW)
    assert await kept(path) == alone


async def test_a_memory_that_is_closed_while_names_are_resolved_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: list[Any]
) -> None:
    path = tmp_path / "apart.db"
    memory = await qrmem.open(str(path), settings=SETTINGS)
    with monkeypatch.context() as patched:
        held = Held(patched)
        adding = asyncio.create_task(memory.add(FEW))
        await held.asked.wait()
        closing = asyncio.create_task(memory.close())
        await asyncio.sleep(0)
        held.released.set()
        await closing
        with pytest.raises((StoreUnavailable, UsageError), match="closed"):
            await adding
    await read(path, FEW, processes=0)
    assert await kept(path) == alone


async def test_a_disk_that_is_full_before_the_names_are_known_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: list[Any]
) -> None:
    path = tmp_path / "apart.db"
    async with await qrmem.open(str(path), settings=SETTINGS) as memory:
        with monkeypatch.context() as patched:
            held = Held(patched)
            usual = SqliteStore.apply

            async def filled(self: SqliteStore, *given: Any) -> int:
                (pages,) = await self._worker.read(_pages)
                await self._worker.read(_pages, most=pages)
                try:
                    return await usual(self, *given)
                finally:
                    await self._worker.read(_pages, most=2**30)

            patched.setattr(SqliteStore, "apply", filled)
            with pytest.raises(StoreUnavailable, match="no space left"):
                await memory.add(FEW)
        assert not held.released.is_set()
        assert asyncio.all_tasks() == {asyncio.current_task()}
        assert (await memory.add(FEW)).read == 0
    assert await kept(path) == alone


def _pages(db: Any, *, most: int = 0) -> Any:
    if most:
        return db.execute(f"PRAGMA max_page_count = {most}").fetchone()
    return db.execute("PRAGMA page_count").fetchone()


# --- somebody else -------------------------------------------------------------------------------


async def _told_by_another(path: Path) -> SqliteStore:
    """Return another store on the file, which has recorded what nobody has merged yet."""
    other = await SqliteStore.open(path, Opening(timeout=10))
    (first, *_) = await other.segments_of(NS, "note 0")
    theirs = Contribution(
        first.id, "extraction", mentions=(Mention("long letter", "PERSON", ("long letter",), 1),)
    )
    await other.record(NS, LedgerRow(first.id, "ok", reasoner="other"), theirs)
    return other


async def _is_settled(path: Path) -> bool:
    """Whether there is nothing left to merge, and what the other has told is there."""
    store = await open_store(str(path), Settings())
    ids = sorted(await store.document_texts(NS))
    is_told = "long letter|PERSON" in {row.key for row in await store.names(NS)}
    made = await merge_documents(store, NS, ids)
    await store.close()
    return is_told and not made


async def test_names_are_resolved_again_if_somebody_changes_them_before_they_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, usual = tmp_path / "apart.db", SqliteStore.apply
    revisions: list[int] = []
    asked: list[str] = []

    async def preceded(self: SqliteStore, ns: str, revision: int, *given: Any) -> int:
        revisions.append(revision)
        if len(revisions) == 1:
            other = await _told_by_another(path)
            await merge_documents(other, NS, ["note 0"])
            await other.close()
        return await usual(self, ns, revision, *given)

    async def noted(as_usual: Resolved, apart: Apart) -> Any:
        asked.append("again")
        return await as_usual()

    around(monkeypatch, noted)
    monkeypatch.setattr(SqliteStore, "apply", preceded)
    report = await read(path, FEW, processes=2)
    assert report.states == {"ok": report.read}
    assert len(asked) == 2
    assert await _is_settled(path)


async def test_somebody_who_merges_while_names_are_resolved_waits_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "apart.db"
    async with await qrmem.open(str(path), settings=SETTINGS) as memory:
        held = Held(monkeypatch)
        adding = asyncio.create_task(memory.add(FEW))
        await held.asked.wait()
        telling = asyncio.create_task(_told_by_another(path))
        await asyncio.sleep(0.05)
        held.released.set()
        other = await telling
        await merge_documents(other, NS, ["note 0"])
        await other.close()
        report = await adding
    assert report.states == {"ok": report.read}
    assert await _is_settled(path)


async def test_two_programs_that_add_at_once_make_the_same_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: list[Any]
) -> None:
    monkeypatch.setattr(apart, "LEAST", 20)
    path, named = tmp_path / "apart.db", list[int]()
    call = Processes.call

    def noted(self: Processes, work: Any, given: Any) -> Any:
        named.extend([id(self)] if work is name else [])
        return call(self, work, given)

    monkeypatch.setattr(Processes, "call", noted)
    await asyncio.gather(*(read(path, part, processes=1) for part in (FEW[::2], FEW[1::2])))
    assert len(set(named)) == 2
    assert await kept(path) == alone


# --- the user's word -----------------------------------------------------------------------------


async def test_what_the_user_decided_and_what_is_alike_reaches_who_resolves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def alike(names: Any) -> Any:
        return [("ann vey|", "gus stone|", 0.97)]

    monkeypatch.setattr("qrmem.agents.merging.alike_by", lambda *_: alike)
    found = []
    for count in (0, 2):
        path = tmp_path / f"{count}.db"
        chosen: Any = {"segment_tokens": 60, "embedder": "none", "processes": count}
        async with qrmem.open(str(path), **chosen) as memory:
            await memory.add(FEW[:3])
            await memory.merge("Bob Holt", "Eve Reed")
            await memory.separate("Bob Marsh", "Marsh")
            await memory.add(FEW)
        found.append(await kept(path))
        store = await open_store(str(path), Settings())
        entity = {row.key: row.entity for row in await store.names(NS)}
        await store.close()
        assert entity["ann vey|"] == entity["gus stone|"]
        assert entity["bob holt|"] == entity["eve reed|"]
        assert entity["marsh|"] == "marsh|"
    assert found[0] == found[1]
