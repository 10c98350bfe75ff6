"""A long list in two processes: the same comes out, whatever becomes of the fork."""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sent_work

from qrmem.apart import halves
from qrmem.graph.disambiguation import NameUse, resolve
from qrmem.processes import Lost, started, usable

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux only")
HERE = os.getpid()


@pytest.fixture(autouse=True)
def forking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halves, "LEAST", 10)
    monkeypatch.setattr(halves, "is_safe", lambda: True)  # other tests may have left threads here


def pids(things: Sequence[object]) -> list[int]:
    return list(halves.mapped(lambda _: os.getpid(), things))


def test_a_fork_does_the_second_half() -> None:
    found = pids(range(21))
    assert found[:10] == [HERE] * 10
    assert len(found) == 21
    assert len(set(found[10:])) == 1
    assert found[10] != HERE


def test_what_is_made_comes_in_order_and_what_it_is_made_with_is_not_sent() -> None:
    unsendable = threading.Lock()

    def square(n: int) -> int:
        assert not unsendable.locked()
        return n * n

    assert halves.mapped(square, range(2001)) == [n * n for n in range(2001)]


def test_few_things_are_done_here() -> None:
    assert pids(range(9)) == [HERE] * 9
    assert pids([]) == []


def test_a_process_that_may_not_be_forked_does_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(halves, "is_safe", lambda: False)
    assert set(pids(range(20))) == {HERE}


@pytest.mark.skipif(usable() < 2, reason="one core")
async def test_processes_that_read_may_be_forked_and_one_with_threads_may_not() -> None:
    async with started(1) as processes:
        assert processes is not None
        assert await processes.call(sent_work.may_be_forked, 0)
        assert not await processes.call(sent_work.may_be_forked, 1)


def test_what_a_killed_fork_leaves_is_done_here() -> None:
    def deadly(n: int) -> int:
        if os.getpid() != HERE:
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    assert halves.mapped(deadly, range(20)) == list(range(20))


def forks_of(process: int) -> list[int]:
    """Wait for the forks of a process, and return them."""
    children = Path(f"/proc/{process}/task/{process}/children")
    while not (found := children.read_text().split()):
        time.sleep(0.01)
    return [int(fork) for fork in found]


async def test_a_fork_ends_with_its_process_even_while_it_sends() -> None:
    async with started(1) as processes:
        assert processes is not None
        calling = asyncio.create_task(processes.call(sent_work.forked_and_slow, 60))
        served = processes._all[0]._process
        (fork,) = await asyncio.to_thread(forks_of, served.pid)
        await asyncio.sleep(0.1)
        served.kill()
        try:
            async with asyncio.timeout(5):
                with pytest.raises(Lost):
                    await calling  # it hears of the end when the fork has let go of the pipe, too
        finally:
            with suppress(ProcessLookupError):
                os.kill(fork, signal.SIGKILL)


def test_an_error_in_the_second_half_is_met_here(capfd: pytest.CaptureFixture[str]) -> None:
    def failing(n: int) -> int:
        if n == 15:
            raise ValueError("of 15")
        return n

    with pytest.raises(ValueError, match="of 15"):
        halves.mapped(failing, range(20))
    capfd.readouterr()  # the fork has its say too


def test_a_fork_that_nobody_waits_for_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    began = os.getppid()
    seen = iter([began, began, 1])
    monkeypatch.setattr("os.getppid", lambda: next(seen))
    done: list[int] = []
    unused: Any = _Unused()
    halves._work(unused, unused, done.append, range(2 * halves._BREATH))
    assert len(done) == halves._BREATH


class _Unused:
    def close(self) -> None:
        """Do nothing."""

    def send(self, made: object) -> None:
        raise AssertionError("sent to nobody")


def test_names_are_resolved_as_by_one_process() -> None:
    people = [f"{given} {last}" for given in ("Ann", "Ben", "Cleo") for last in ("Poe", "Rau")]
    names = [*people, "Poe", "Rau", "Ann", "B. Poe", "BBC", "British Broadcasting Corporation"]
    uses = [NameUse(f"{name.lower()}|", name, n) for n, name in enumerate(names, 1)]
    assert resolve(uses, mapped=halves.mapped) == resolve(uses)
