"""Other processes of this program, for work in pure Python: one process uses one core (ADR 0014).

A request is a module's function and what it is given, pickled, with its length before it; a reply
is what the function returned, or nothing where it raised. Pipes carry both, so that a process ends
with its parent, however that ends.
"""

import asyncio
import io
import json
import os
import pickle
import struct
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any, BinaryIO, Self, TypeVar

from qrmem.collecting import seldom_collecting

T = TypeVar("T")
R = TypeVar("R")
Work = Callable[[T], Awaitable[R]]

MOST = 4
"""Processes at most: one has to feed them all."""
AHEAD = 2
"""Requests that wait for each process or are done by it, so that it is never without one."""

_WAITING = 1 << 20
"""Bytes of replies that wait until they are read; more is not for everyone to have."""

_LENGTH = struct.Struct(">Q")
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from qrmem.processes import serve; serve()"
)


def usable() -> int:
    """Return how many processes are worth starting here; 0 on a single core."""
    if getattr(sys, "frozen", False) or not sys.executable:
        return 0  # there is no interpreter to start: the executable is the program itself
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return min(MOST, cores) if cores > 1 else 0


@asynccontextmanager
async def started(wanted: int | None) -> "AsyncIterator[Processes | None]":
    """Have so many processes, or as many as are usable; `None` where there are none to use."""
    count = usable() if wanted is None else wanted
    processes = None
    # Some event loops have no children at all, or none outside of the main thread.
    with suppress(OSError, NotImplementedError, RuntimeError):
        processes = await Processes.start(count) if count else None
    try:
        yield processes
    finally:
        if processes is not None:
            await processes.close()


class Lost(Exception):
    """A process ended, or could not do what it was asked for."""


class Processes:
    """Some processes; each does what it is given, one after the other."""

    def __init__(self, started: Iterable[Process]) -> None:
        """Take processes that run `serve`; see `start`."""
        self._all = [_Served(process) for process in started]
        self._called = 0

    @classmethod
    async def start(cls, count: int) -> Self:
        """Start so many processes.

        Raises:
            OSError: none can be started here.
        """
        path = json.dumps([one for one in sys.path if isinstance(one, str)])
        started: list[Process] = []
        try:
            for _ in range(count):
                started.append(
                    await asyncio.create_subprocess_exec(
                        # -P: no module of the present folder comes before those of Python
                        *(sys.executable, "-P", "-c", _START, path),
                        stdin=PIPE,
                        stdout=PIPE,
                        stderr=DEVNULL,
                        start_new_session=True,  # Ctrl-C is for the parent alone, who then ends it
                    )
                )
        except BaseException:
            await cls(started).close()
            raise
        return cls(started)

    def __len__(self) -> int:
        return len(self._all)

    async def call(self, work: Work[T, R], given: T) -> R:
        """Return what a function of a module makes of something; they take turns.

        Raises:
            Lost: it is to be done here.
        """
        process = self._all[self._called % len(self._all)]
        self._called += 1
        return await process.call(work, given)

    async def mapped(self, work: Work[T, R], given: Iterable[T]) -> AsyncGenerator[R, None]:
        """Yield what a function of a module makes of each given thing, in order.

        The nth is always the same process's, so that what it remembers serves the next map.

        Raises:
            Lost: what is left is to be done here.
        """
        calls: deque[asyncio.Task[R]] = deque()
        try:
            for n, one in enumerate(given):
                process = self._all[n % len(self._all)]
                calls.append(asyncio.create_task(process.call(work, one)))
                if len(calls) == AHEAD * len(self._all):
                    yield await calls.popleft()
            while calls:
                yield await calls.popleft()
        finally:
            for call in calls:
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)

    async def close(self) -> None:
        """End them all, whatever they are at."""
        await asyncio.gather(*(process.close() for process in self._all))


class _Served:
    """One process and its pipes."""

    def __init__(self, process: Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._requests, self._replies = process.stdin, process.stdout
        self._sending, self._receiving = asyncio.Lock(), asyncio.Lock()

    async def call(self, work: Work[T, R], given: T) -> R:
        """Return what `work` makes of something; calls are answered in their order."""
        request = pickled((work, given))
        try:
            async with self._sending:
                self._requests.write(_LENGTH.pack(len(request)) + request)
                await self._requests.drain()
            async with self._receiving:
                reply = await self._received()
        except (OSError, EOFError) as exc:
            raise Lost("a process has ended") from exc
        except asyncio.CancelledError:
            self._kill()  # its reply would be taken for the next one's
            raise
        if not reply:
            raise Lost("a process could not do its work")
        made: R = pickle.loads(reply)
        return made

    async def close(self) -> None:
        self._kill()
        async with self._receiving:  # a call that is still waiting hears first that it is over
            await self._process.communicate()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()

    async def _received(self) -> bytes:
        (length,) = _LENGTH.unpack(await self._replies.readexactly(_LENGTH.size))
        return await self._replies.readexactly(length)


# --- records on their way ------------------------------------------------------------------------


class _ByFields(dict[type, Callable[[Any], tuple[Any, ...]]]):
    """How dataclasses are pickled: their own way asks for their fields anew each time."""

    def __missing__(self, kind: type) -> Callable[[Any], tuple[Any, ...]]:
        if not is_dataclass(kind):
            raise KeyError(kind)
        names = [field.name for field in fields(kind)]
        values = attrgetter(*names)
        one = len(names) == 1
        self[kind] = lambda record: (kind, (values(record),) if one else values(record))
        return self[kind]


_BY_FIELDS = _ByFields()


def pickled(value: object) -> bytes:
    """Return what `pickle.loads` makes the same value of."""
    buffer = io.BytesIO()
    pickler = pickle.Pickler(buffer, pickle.HIGHEST_PROTOCOL)
    pickler.dispatch_table = _BY_FIELDS
    pickler.dump(value)
    return buffer.getvalue()


# --- in such a process ---------------------------------------------------------------------------


def serve() -> None:
    """Answer requests until there are no more; what the work prints goes nowhere."""
    _widen(1)
    with os.fdopen(os.dup(1), "wb") as replies, suppress(BrokenPipeError), seldom_collecting():
        os.dup2(2, 1)
        answer(sys.stdin.buffer, replies)


def _widen(pipe: int) -> None:
    """Let whole replies wait in a pipe, where that can be had: the next one is made meanwhile."""
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _WAITING)


def answer(requests: BinaryIO, replies: BinaryIO) -> None:
    """Read requests from one pipe and write replies to another, until the first is closed."""
    with asyncio.Runner() as runner:
        while request := _read(requests):
            try:
                work, given = pickle.loads(request)
                reply = pickled(runner.run(work(given)))
            except Exception:
                reply = b""  # done again by the parent, it fails there with all that belongs to it
            replies.write(_LENGTH.pack(len(reply)) + reply)
            replies.flush()


def _read(pipe: BinaryIO) -> bytes:
    head = pipe.read(_LENGTH.size)
    return pipe.read(_LENGTH.unpack(head)[0]) if len(head) == _LENGTH.size else b""
