import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import sent_work

from qrmem.processes import MOST, Lost, Processes, started, usable

ALONE = """
import asyncio, sent_work
from qrmem.processes import Processes

async def main():
    processes = await Processes.start(2)
    async for one in processes.mapped(sent_work.process_id, range(2)):
        print(one, flush=True)
    async for one in processes.mapped(sent_work.slept, [0.2] * 1000):
        pass

asyncio.run(main())
"""


@asynccontextmanager
async def some(count: int = 2) -> AsyncIterator[Processes]:
    processes = await Processes.start(count)
    try:
        yield processes
    finally:
        await processes.close()


async def all_of(processes: Processes, work: Any, given: Iterable[Any]) -> list[Any]:
    async with aclosing(processes.mapped(work, given)) as made:
        return [one async for one in made]


def is_running(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_what_is_made_comes_in_order_and_the_nth_is_always_the_same_processs() -> None:
    async with some(3) as processes:
        assert len(processes) == 3
        assert await all_of(processes, sent_work.doubled, range(50)) == list(range(0, 100, 2))
        first = await all_of(processes, sent_work.process_id, range(9))
        assert first == await all_of(processes, sent_work.process_id, range(9))
        assert len(set(first)) == 3
        assert os.getpid() not in first
        assert await all_of(processes, sent_work.doubled, []) == []


async def test_large_things_go_both_ways_at_once() -> None:
    async with some() as processes:
        texts = [str(n) * 1_000_000 for n in range(8)]
        assert await all_of(processes, sent_work.printed, texts) == texts


@pytest.mark.parametrize("work", [sent_work.refused_above_two, sent_work.ended_above_two])
async def test_what_fails_in_a_process_is_left_to_the_caller(work: Any) -> None:
    made = []

    async def collect(processes: Processes) -> None:
        async with aclosing(processes.mapped(work, range(10))) as found:
            async for one in found:
                made.append(one)

    async with some() as processes:
        with pytest.raises(Lost):
            await collect(processes)
    assert made == [0, 1, 2]


async def test_processes_are_ended_in_the_middle_of_their_work() -> None:
    async with some() as processes:
        ids = await all_of(processes, sent_work.process_id, range(2))
        waiting = asyncio.create_task(all_of(processes, sent_work.slept, [600.0] * 8))
        await asyncio.sleep(0.1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert not any(map(is_running, ids))


async def test_after_a_call_that_was_given_up_no_reply_is_taken_for_anothers() -> None:
    async with some(1) as processes:
        async with aclosing(processes.mapped(sent_work.slept, [0.0, 600.0, 600.0])) as made:
            assert await anext(made) == 0.0
        with pytest.raises(Lost):
            await all_of(processes, sent_work.doubled, [21])


def test_they_end_with_a_parent_that_is_killed() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", ALONE]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        ids = [int(parent.stdout.readline()) for _ in range(2)]
        assert all(map(is_running, ids))
        parent.kill()
    # What they are at they finish; the pipe that they read next is closed.
    deadline = time.monotonic() + 60
    while any(map(is_running, ids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(is_running, ids))


async def test_none_are_started_where_they_are_not_wanted_or_cannot_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with started(0) as processes:
        assert processes is None
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    async with started(2) as processes:
        assert processes is None


async def test_they_import_what_this_one_does_and_nothing_of_the_present_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("open('imported', 'w').close()\n1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [tmp_path / "is no text", *sys.path])
    async with some() as processes:
        assert await all_of(processes, sent_work.doubled, [1, 2, 3]) == [2, 4, 6]
    assert not (tmp_path / "imported").exists()


async def test_they_can_be_ended_while_they_are_waited_for() -> None:
    async with some() as processes:
        waiting = asyncio.create_task(all_of(processes, sent_work.slept, [600.0] * 8))
        await asyncio.sleep(0.1)
    with pytest.raises(Lost):
        await waiting


def test_as_many_are_usable_as_there_are_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, expected in ((1, 0), (2, 2), (64, MOST)):
        monkeypatch.setattr(
            os, "sched_getaffinity", lambda _, cores=cores: set(range(cores)), raising=False
        )
        assert usable() == expected
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert usable() == 0
