"""A process is killed, or its disk is full, in the middle of a change: no half state, nothing lost.

Every change is killed within and after each of its transactions. What was reported as done is
there; an edit is made or not made; and the same change, made again, ends where it would have.
"""

import asyncio
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.neo4j_server import Server
from servers.openai_server import OpenAIServer, in_thread

import qrmem
from qrmem import Memory
from qrmem.config import Settings
from qrmem.errors import QrmemError
from qrmem.graphstore.sqlite.connection import ConnectionThread

TEXTS = {
    "a": "Ann Holt works for Acme. Ann Holt lives in Oslo. Ann Holt met Bob Stone.",
    "b": "Ann Holt works for Acme. Robert Stone met Eve Gray in Rome.",
    "c": "Eve Gray lives in Rome. Holt is a friend of Eve Gray.",
}
Change = Callable[[Memory], Awaitable[object]]


async def _id(memory: Memory, word: str, *, deleted: bool = False) -> str:
    facts = await memory.facts(deleted=deleted)
    return next((f.id for f in facts if word in f.description), facts[0].id if facts else "")


async def _edit(memory: Memory) -> None:
    await memory.edit_fact(await _id(memory, "Oslo"), "Ann Holt rents a flat in Oslo.")


async def _end(memory: Memory) -> None:
    await memory.end_fact(await _id(memory, "Oslo"), "2020-05")


async def _delete_fact(memory: Memory) -> None:
    if id := await _id(memory, "Acme"):
        await memory.delete_fact(id)


async def _restore(memory: Memory) -> None:
    if id := await _id(memory, "friend", deleted=True):
        await memory.restore_fact(id)


async def _merge(memory: Memory) -> None:
    await memory.merge("Bob Stone", "Robert Stone")


async def _separate(memory: Memory) -> None:
    await memory.separate("Ida Lund", "Eve Gray")


async def _delete(memory: Memory) -> None:
    if "b" in [one.id for one in await memory.documents()]:
        await memory.delete("b")


EDITS: list[Change] = [_edit, _end, _delete_fact, _restore, _merge, _separate, _delete]


async def _add(memory: Memory) -> None:
    await memory.add(
        [{"id": f"n{n}", "text": f"Ann Holt met Ida Lund{n} in Bergen."} for n in "de"]
    )


async def _update(memory: Memory) -> None:
    text = f"Bob Stone owns a dog. {TEXTS['c']}"
    await memory.add({"id": "c", "text": text}, update=True)


async def _rebuild(memory: Memory) -> None:
    await memory.add({"id": "c", "text": TEXTS["c"]}, rebuild=True)


async def _forget_user(memory: Memory) -> None:
    await memory.forget_user("ann")


async def _repair(memory: Memory) -> None:
    await memory.repair()


LONG: list[Change] = [_add, _update, _rebuild, _forget_user, _repair]


async def _shown(memory: Memory) -> dict[str, object]:
    """Return everything that a user sees of a memory."""
    store, ns = memory._session.store, memory._session.ns
    return {
        "facts": [str(fact) for fact in await memory.facts(superseded=True)],
        "deleted": [str(fact) for fact in await memory.facts(deleted=True)],
        "documents": [(one.id, one.characters) for one in await memory.documents()],
        "names": {row.key: (row.entity, row.entity_name) for row in await store.names(ns)},
        "turns": [turn.text for turn in await memory.turns()],
    }


async def _state(settings: Settings, folder: Path) -> dict[str, object]:
    """Return what a reopened memory shows; graph and archive must agree."""
    async with qrmem.open(settings=settings) as memory:
        shown = await _shown(memory)
        assert (await memory.repair(compare_only=True)).differences == ()
        assert not (await memory.status()).problems
        await memory.export(folder / "x.qr", overwrite=True)
    async with qrmem.open(":memory:", embedder="none", schema=settings.schema) as other:
        await other.load(folder / "x.qr")
        assert await _shown(other) == shown
    return shown


async def _fill(settings: Settings) -> None:
    async with qrmem.open(settings=settings) as memory:
        await memory.add([{"id": id, "text": text} for id, text in TEXTS.items()])
        await memory.add_turn("user", "My sister Ida Lund lives in Bergen.", user="ann")
        await memory.delete_fact(await _id(memory, "friend"))
        await memory.merge("Ida Lund", "Eve Gray")


async def _made(settings: Settings, change: Change) -> None:
    async with qrmem.open(settings=settings) as memory:
        await change(memory)


def _die_in(transaction: int, *, is_within: bool) -> None:
    """Kill this process within a write transaction of SQLite, or after it."""
    real, begun = ConnectionThread._transact, 0

    def transact(self: Any, begin: str, work: Any, args: Any, kwargs: Any) -> Any:
        nonlocal begun
        if begin != "BEGIN IMMEDIATE":
            return real(self, begin, work, args, kwargs)
        begun += 1

        def dying(db: sqlite3.Connection, *args: Any, **kwargs: Any) -> None:
            work(db, *args, **kwargs)
            os.kill(os.getpid(), signal.SIGKILL)

        result = real(
            self, begin, dying if is_within and begun == transaction else work, args, kwargs
        )
        if begun == transaction:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    ConnectionThread._transact = transact  # type: ignore[method-assign]


def _in_child(work: Callable[[], object]) -> int:
    """Run work in a process of its own; return how it ended: an exit code, or a negative signal."""
    child = os.fork()
    if not child:
        code = 3
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture
def filled(tmp_path: Path) -> Settings:
    settings = Settings(memory=str(tmp_path / "m.db"), embedder="none")
    asyncio.run(_fill(settings))
    return settings


def _kills(settings: Settings, change: Change, folder: Path) -> Iterator[Settings]:
    """Yield copies of a memory in which a change was killed, at each of its transactions."""
    for is_within in (True, False):
        for transaction in range(1, 100):
            copied = settings.with_(memory=str(folder / f"{is_within:d}-{transaction}.db"))
            shutil.copy(settings.memory, copied.memory)

            def killed(n: int = transaction, copied: Settings = copied) -> None:
                _die_in(n, is_within=is_within)  # noqa: B023
                asyncio.run(_made(copied, change))

            if _in_child(killed) == 0:
                break
            yield copied
        assert transaction > 1, "nothing was killed"


@pytest.mark.parametrize("change", EDITS, ids=lambda one: one.__name__)
def test_a_killed_edit_is_made_or_not_made(
    change: Change, filled: Settings, tmp_path: Path
) -> None:
    before = asyncio.run(_state(filled, tmp_path))
    whole = filled.with_(memory=str(tmp_path / "whole.db"))
    shutil.copy(filled.memory, whole.memory)
    asyncio.run(_made(whole, change))
    after = asyncio.run(_state(whole, tmp_path))
    assert before != after
    for copied in _kills(filled, change, tmp_path):
        state = asyncio.run(_state(copied, tmp_path))
        assert state in (before, after)
        if state == before:
            asyncio.run(_made(copied, change))
            assert asyncio.run(_state(copied, tmp_path)) == after


@pytest.mark.parametrize("change", LONG, ids=lambda one: one.__name__)
def test_a_killed_change_ends_where_an_undisturbed_one_does_when_made_again(
    change: Change, filled: Settings, tmp_path: Path
) -> None:
    whole = filled.with_(memory=str(tmp_path / "whole.db"))
    shutil.copy(filled.memory, whole.memory)
    asyncio.run(_made(whole, change))
    after = asyncio.run(_state(whole, tmp_path))
    for copied in _kills(filled, change, tmp_path):
        asyncio.run(_made(copied, change))
        assert asyncio.run(_state(copied, tmp_path)) == after


def test_a_killed_turn_is_completed_by_the_next_one(filled: Settings, tmp_path: Path) -> None:
    async def add_turn(memory: Memory) -> None:
        await memory.add_turn("user", "My dog is called Mittens.")

    for copied in _kills(filled, add_turn, tmp_path):
        asyncio.run(_made(copied, add_turn))
        turns = asyncio.run(_state(copied, tmp_path))["turns"]
        first, dog = "My sister Ida Lund lives in Bergen.", "My dog is called Mittens."
        assert turns in ([first, dog], [first, dog, dog])


def test_a_killed_import_or_change_of_the_embedder_is_made_again(
    filled: Settings, tmp_path: Path
) -> None:
    before = asyncio.run(_state(filled, tmp_path))
    archive, empty = tmp_path / "x.qr", filled.with_(memory=str(tmp_path / "empty.db"))
    shutil.copy(archive, tmp_path / "whole.qr")

    async def load(memory: Memory) -> None:
        await memory.load(tmp_path / "whole.qr")

    asyncio.run(_made(empty, lambda memory: memory.add_text("Ann.", id="x")))
    asyncio.run(_made(empty, lambda memory: memory.delete_all()))
    for copied in _kills(empty, load, tmp_path):
        if not asyncio.run(_is_filled(copied)):
            asyncio.run(_made(copied, load))
        assert asyncio.run(_state(copied, tmp_path)) == before
    with in_thread(OpenAIServer()) as server:
        settings = filled.with_(embed_base_url=server.url)

        async def reembed(memory: Memory) -> None:
            await memory.reembed("openai:e")

        for copied in _kills(settings, reembed, tmp_path):
            asyncio.run(_made(copied.with_(embedder=""), reembed))
            asyncio.run(_require_vectors(copied.with_(embedder="")))


async def _is_filled(settings: Settings) -> bool:
    async with qrmem.open(settings=settings) as memory:
        try:
            return len(await memory.documents()) == len(TEXTS) + 1
        except QrmemError:
            return False


async def _require_vectors(settings: Settings) -> None:
    async with qrmem.open(settings=settings) as memory:
        store, ns = memory._session.store, memory._session.ns
        segments = [row.segment_id for row in await store.ledger(ns)]
        assert list(await store.owners(ns, "segment", segments)) == segments


# --- killed at random ----------------------------------------------------------------------------

WORK = """
import asyncio, sys, qrmem
from qrmem.config import Secret, Settings
memory, user, password, start = sys.argv[1:]
settings = Settings(memory=memory, namespace="kills", embedder="none",
                    neo4j_user=user, neo4j_password=Secret(password))
async def main():
    async with qrmem.open(settings=settings) as m:
        for n in range(int(start), 10**6):
            await m.add_text(f"Ann Holt met Person Number{n} in Oslo.", id=f"d{n}")
            print("document", f"d{n}", flush=True)
            print("turn", await m.add_turn("user", f"I like town number {n}."), n, flush=True)
            fact = next(f.id for f in await m.facts() if f.document_id == f"d{n}")
            await m.edit_fact(fact, f"spoke with number {n}")
            print("edited", fact, f"spoke with number {n}", flush=True)
            deleted = (await m.facts())[0].id
            await m.delete_fact(deleted)
            print("deleted", deleted, flush=True)
asyncio.run(main())
"""


def _work_until_killed(settings: Settings, start: int, seconds: float) -> list[list[str]]:
    """Run changes in a process; kill it after some time; return what it reported as done."""
    connection = [settings.memory, settings.neo4j_user, settings.neo4j_password.reveal()]
    with subprocess.Popen(
        [sys.executable, "-c", WORK, *connection, str(start)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        time.sleep(seconds)
        process.kill()
        lines = first + process.stdout.read()
    return [line.split(maxsplit=2) for line in lines.splitlines() if line]


def _require_all_kept(settings: Settings, folder: Path, rounds: int) -> None:
    chance, done, start = random.Random(7), list[list[str]](), 0
    settings = settings.with_(namespace="kills", embedder="none")
    for _ in range(rounds):
        lines = _work_until_killed(settings, start, chance.uniform(0.05, 1.0))
        assert lines
        done, start = done + lines, start + 1000
        asyncio.run(_made(settings, lambda memory: memory.add_turn("user", "And on.")))
        asyncio.run(_require_kept(settings, done, folder))


async def _require_kept(settings: Settings, done: list[list[str]], folder: Path) -> None:
    async with qrmem.open(settings=settings) as memory:
        unread = [problem[0] for problem in (await memory.status()).problems]
        assert len(set(unread)) <= 1, "only what was in hand may be unread"
        for id in unread:
            await memory.add_text((await memory.document(id)).text, id=id)
    await _state(settings, folder)
    async with qrmem.open(settings=settings) as memory:
        documents = {one.id for one in await memory.documents()}
        turns = {turn.id: turn.text for turn in await memory.turns()}
        facts = {fact.id: fact.description for fact in await memory.facts()}
        gone = {fact.id for fact in await memory.facts(deleted=True)}
    deleted = {line[1] for line in done if line[0] == "deleted"}
    assert deleted <= gone
    for kind, id, *rest in done:
        if kind == "document":
            assert id in documents
        elif kind == "turn":
            assert turns[id] == f"I like town number {rest[0]}."
        elif kind == "edited" and id not in gone:
            assert facts[id] == rest[0]


def test_nothing_that_was_reported_is_lost_by_kills(tmp_path: Path) -> None:
    _require_all_kept(Settings(memory=str(tmp_path / "m.db"), embedder="none"), tmp_path, 4)


@pytest.mark.neo4j
def test_nothing_that_was_reported_is_lost_by_kills_in_neo4j(neo4j: Server, tmp_path: Path) -> None:
    _require_all_kept(neo4j.settings, tmp_path, 3)


# --- a full disk ---------------------------------------------------------------------------------


async def _turn(memory: Memory) -> None:
    await memory.add_turn("user", "My dog is called Mittens.")


@pytest.fixture(params=["limit", "disk"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Yield a folder whose file system is small, or in which files are kept small."""
    if request.param == "limit":
        yield tmp_path
        return
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("no file system may be mounted")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def _fill_disk(folder: Path, left: int) -> None:
    """Leave so many bytes on a file system."""
    free = os.statvfs(folder)
    with (folder / "filler").open("wb") as file:
        file.write(b"\0" * max(0, free.f_bavail * free.f_bsize - left))


@pytest.mark.parametrize("change", [*EDITS, _turn], ids=lambda one: one.__name__)
def test_an_error_on_a_full_disk_says_the_truth(
    change: Change, small: Path, filled: Settings, tmp_path: Path
) -> None:
    before = asyncio.run(_state(filled, tmp_path))
    whole = filled.with_(memory=str(tmp_path / "whole.db"))
    shutil.copy(filled.memory, whole.memory)
    asyncio.run(_made(whole, change))
    after = asyncio.run(_state(whole, tmp_path))
    ends = set()
    for left in (8 << 10, 40 << 10, 80 << 10, 120 << 10, 200 << 10):
        copied = filled.with_(memory=str(small / f"full{left}.db"))
        shutil.copy(filled.memory, copied.memory)

        def limited(left: int = left, copied: Settings = copied) -> None:
            asyncio.run(_changed(copied, change, small, left, is_disk=small != tmp_path))

        code = _in_child(limited)
        (small / "filler").unlink(missing_ok=True)
        if change is _turn:  # the next one completes it
            asyncio.run(_made(copied, _turn))
            state = asyncio.run(_state(copied, tmp_path))
            assert state["turns"] == [
                "My sister Ida Lund lives in Bergen.",
                *["My dog is called Mittens."] * (1 if code == 3 else 2),
            ]
        else:
            assert asyncio.run(_state(copied, tmp_path)) == (before if code == 3 else after)
        ends.add(code)
        for path in small.glob("full*"):
            path.unlink()
    assert 3 in ends


async def _changed(
    settings: Settings, change: Change, folder: Path, left: int, *, is_disk: bool
) -> None:
    async with qrmem.open(settings=settings) as memory:
        await memory.facts()
        if is_disk:
            _fill_disk(folder, left)
        else:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (left, left))
        try:
            await change(memory)
        except QrmemError:
            os._exit(3)
        os._exit(0)
