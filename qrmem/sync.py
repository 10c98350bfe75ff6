"""The same memory for scripts without `await`: a thin proxy over one event-loop thread.

There is no second implementation: every method runs the coroutine of the same name on the loop of
its own thread, and has its signature and documentation.
"""

import asyncio
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

from qrmem import memory as facade
from qrmem.errors import UsageError
from qrmem.memory.keywords import AskKeywords
from qrmem.memory.session import CLOSED
from qrmem.types import Answer, Step, Words

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    method: Callable[Concatenate[facade.Memory, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Memory", P], T]:
    """Return a blocking method for an async one."""

    @wraps(method)
    def call(self: "Memory", /, *args: P.args, **options: P.kwargs) -> T:
        return self._run(method(self._memory, *args, **options))

    return call


class Memory(facade.BlockingMemory):
    """`qrmem.Memory` without `await`. Use it in a `with` block, or `close()` it."""

    def __init__(self, opening: facade.Opening) -> None:
        """Start the thread and open the memory on it; use `open`."""
        self._streams: set[AsyncGenerator[Any, None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="qrmem", daemon=True)
        self._thread.start()
        try:
            self._memory = self._run(opening.open())
        except BaseException:
            self._stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._memory)

    def _repr_html_(self) -> str:
        return self._memory._repr_html_()

    def close(self) -> None:
        """Close the memory and stop its thread; afterwards every call is refused."""
        if not self._loop.is_closed() and self._is_running():
            for items in list(self._streams):
                self._end(items)
            self._run(self._memory.close())
            self._stop()

    def stream(
        self, question: str, *, words: bool = False, **options: Unpack[AskKeywords]
    ) -> Iterator[Step | Words | Answer]:
        """Answer like `ask`, yielding every step as it happens, then the answer.

        Args:
            words: also yield the chat model's words while it writes them.
            options: the keyword arguments of `ask`.
        """
        items = self._memory.stream(question, words=words, **options)
        self._streams.add(items)
        try:
            while (item := self._run(_next(items))) is not None:
                yield item
        finally:
            self._end(items)

    add = _blocking(facade.Memory.add)
    add_text = _blocking(facade.Memory.add_text)
    add_messages = _blocking(facade.Memory.add_messages)
    wait = _blocking(facade.Memory.wait)
    extract_facts = _blocking(facade.Memory.extract_facts)
    add_turn = _blocking(facade.Memory.add_turn)
    forget_user = _blocking(facade.Memory.forget_user)
    ask = _blocking(facade.Memory.ask)
    standing = _blocking(facade.Memory.standing)
    delete = _blocking(facade.Memory.delete)
    delete_all = _blocking(facade.Memory.delete_all)
    document = _blocking(facade.Memory.document)
    documents = _blocking(facade.Memory.documents)
    entities = _blocking(facade.Memory.entities)
    entity = _blocking(facade.Memory.entity)
    export = _blocking(facade.Memory.export)
    facts = _blocking(facade.Memory.facts)
    graph = _blocking(facade.Memory.graph)
    judge_facts = _blocking(facade.Memory.judge_facts)
    edit_fact = _blocking(facade.Memory.edit_fact)
    end_fact = _blocking(facade.Memory.end_fact)
    delete_fact = _blocking(facade.Memory.delete_fact)
    restore_fact = _blocking(facade.Memory.restore_fact)
    graphml = _blocking(facade.Memory.graphml)
    markdown = _blocking(facade.Memory.markdown)
    load = _blocking(facade.Memory.load)
    load_openie = _blocking(facade.Memory.load_openie)
    merge = _blocking(facade.Memory.merge)
    merges = _blocking(facade.Memory.merges)
    namespaces = _blocking(facade.Memory.namespaces)
    neo4j_queries = _blocking(facade.Memory.neo4j_queries)
    plan = _blocking(facade.Memory.plan)
    prune = _blocking(facade.Memory.prune)
    recall = _blocking(facade.Memory.recall)
    reembed = _blocking(facade.Memory.reembed)
    build_tree = _blocking(facade.Memory.build_tree)
    trees = _blocking(facade.Memory.trees)
    tree_tops = _blocking(facade.Memory.tree_tops)
    tree_nodes = _blocking(facade.Memory.tree_nodes)
    repair = _blocking(facade.Memory.repair)
    search = _blocking(facade.Memory.search)
    segments = _blocking(facade.Memory.segments)
    separate = _blocking(facade.Memory.separate)
    status = _blocking(facade.Memory.status)
    trail = _blocking(facade.Memory.trail)
    trails = _blocking(facade.Memory.trails)
    turns = _blocking(facade.Memory.turns)
    usage = _blocking(facade.Memory.usage)

    def call(self, function: Callable[[facade.Memory], Coroutine[Any, Any, T]]) -> T:
        """Run an async function of the memory, and wait until it is done."""
        return self._run(function(self._memory))

    async def acall(self, function: Callable[[facade.Memory], Coroutine[Any, Any, T]]) -> T:
        """Like `call`, for use in an event loop, which it does not block."""
        self._require_running()
        work = asyncio.run_coroutine_threadsafe(function(self._memory), self._loop)
        return await asyncio.wrap_future(work)

    def _is_running(self) -> bool:
        """Return whether the thread runs: not after a fork, nor while Python exits."""
        return self._thread.is_alive() and not sys.is_finalizing()

    def _require_running(self) -> None:
        """Refuse a call that would never return.

        Raises:
            UsageError: the memory is closed, or its thread does not run here.
        """
        if self._loop.is_closed():
            raise UsageError(CLOSED)
        if sys.is_finalizing():
            raise UsageError("the memory cannot be used while Python ends; close it before")
        if not self._thread.is_alive():
            raise UsageError("the memory was opened in another process; open it in this one")
        if threading.current_thread() is self._thread:
            raise UsageError("a function that the memory calls cannot wait for the memory")

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; Ctrl-C cancels it and waits until it has stopped.

        Raises:
            UsageError: the memory is closed, or its thread does not run here.
        """
        try:
            self._require_running()
        except UsageError:
            work.close()
            raise
        tasks: list[asyncio.Task[Any]] = []

        async def run() -> T:
            tasks.extend(filter(None, [asyncio.current_task()]))
            return await work

        try:
            return asyncio.run_coroutine_threadsafe(run(), self._loop).result()
        except KeyboardInterrupt:  # Ctrl-C may come before we wait for the call
            asyncio.run_coroutine_threadsafe(_cancelled(tasks), self._loop).result()
            raise

    def _end(self, items: AsyncGenerator[Any, None]) -> None:
        """Close a stream that was left before its answer."""
        if items in self._streams:
            self._streams.discard(items)
            if self._is_running():
                self._run(items.aclose())

    def _stop(self) -> None:
        asyncio.run_coroutine_threadsafe(_end_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _opens(opening: Callable[P, facade.Opening]) -> Callable[P, Memory]:
    """Return an `open` that returns a memory instead of an awaitable."""

    @wraps(opening)
    def call(*args: P.args, **options: P.kwargs) -> Memory:
        return Memory(opening(*args, **options))

    return call


open = _opens(facade.open)


async def _next(items: Any) -> Step | Words | Answer | None:
    item: Step | Words | Answer | None = await anext(items, None)
    return item


async def _cancelled(tasks: list[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


async def _end_all() -> None:
    """Cancel everything that still runs on this loop: it cannot finish after the loop stops."""
    tasks_left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks_left:
        task.cancel()
    await asyncio.gather(*tasks_left, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()
