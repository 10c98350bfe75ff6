"""The same memory for scripts without `await`: a thin proxy over one event-loop thread.

There is no second implementation: every method runs the coroutine of the same name on the loop of
its own thread. A test compares the signatures with `qrmem.memory.Memory`.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack

from qrmem import memory as facade
from qrmem.config import Settings
from qrmem.errors import UsageError
from qrmem.llm.caps import CapOptions
from qrmem.llm.sums import By
from qrmem.session import CLOSED
from qrmem.sources import Source
from qrmem.types import (
    AddReport,
    Answer,
    Archived,
    Document,
    DocumentInfo,
    EntityView,
    ExtractionReport,
    Hit,
    Listener,
    MemoryStatus,
    Merge,
    Orientation,
    Recalled,
    Scalar,
    Step,
    Trail,
    Turn,
    UsageRow,
    Words,
)

if TYPE_CHECKING:
    from qrmem.graphstore.neo4j import SavedQuery
    from qrmem.planning.figures import Plan
    from qrmem.retrieval.fragments import FragmentSettings

T = TypeVar("T")


def open(
    memory: str | None = None,
    *,
    namespace: str | None = None,
    settings: Settings | None = None,
    create: bool = True,
    listener: Listener | None = None,
    **chosen: Any,
) -> "Memory":
    """Open a memory; see `qrmem.open`. Use it in a `with` block, or `close()` it."""
    return Memory(
        memory, namespace=namespace, settings=settings, create=create, listener=listener, **chosen
    )


class _Loop:
    """One event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="qrmem", daemon=True)
        self._thread.start()

    @property
    def is_closed(self) -> bool:
        """Whether it takes no work any more."""
        return self._loop.is_closed()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end; Ctrl-C cancels it and waits until it has let go.

        Raises:
            UsageError: the loop is closed.
        """
        if self.is_closed:
            work.close()
            raise UsageError(CLOSED)
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def close(self) -> None:
        """Stop the thread; a second time does nothing."""
        if self.is_closed:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class Memory:
    """`qrmem.Memory` without `await`; every method is documented there."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._loop = _Loop()
        try:
            self._memory = self._loop.run(_opened(*args, **kwargs))
        except BaseException:
            self._loop.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the memory and stop its thread; afterwards every call is refused."""
        if not self._loop.is_closed:
            self._loop.run(self._memory.close())
        self._loop.close()

    def add(
        self,
        source: Source,
        *,
        update: bool = False,
        rebuild: bool = False,
        glob: str | None = None,
        question: str = "",
        **caps: Unpack[CapOptions],
    ) -> AddReport:
        """See `qrmem.Memory.add`."""
        return self._loop.run(
            self._memory.add(
                source, update=update, rebuild=rebuild, glob=glob, question=question, **caps
            )
        )

    def add_turn(
        self,
        role: str,
        text: str,
        *,
        at: datetime | str | None = None,
        session: str = "",
        speaker: str = "",
    ) -> str:
        """See `qrmem.Memory.add_turn`."""
        return self._loop.run(
            self._memory.add_turn(role, text, at=at, session=session, speaker=speaker)
        )

    def add_messages(
        self,
        messages: Iterable[Any],
        *,
        at: datetime | str | None = None,
        session: str = "",
        only_new: bool = False,
    ) -> list[str]:
        """See `qrmem.Memory.add_messages`."""
        return self._loop.run(
            self._memory.add_messages(messages, at=at, session=session, only_new=only_new)
        )

    def turns(self, session: str | None = None) -> list[Turn]:
        """See `qrmem.Memory.turns`."""
        return self._loop.run(self._memory.turns(session))

    def recall(
        self,
        prompt: str,
        *,
        session: str = "",
        tokens: int = 2000,
        fragments: "FragmentSettings | None" = None,
    ) -> Recalled:
        """See `qrmem.Memory.recall`."""
        return self._loop.run(
            self._memory.recall(prompt, session=session, tokens=tokens, fragments=fragments)
        )

    def corrections(self, ids: Iterable[str]) -> dict[str, list[Turn]]:
        """See `qrmem.Memory.corrections`."""
        return self._loop.run(self._memory.corrections(ids))

    def search(
        self,
        question: str,
        *,
        k: int = 10,
        documents: Sequence[str] | None = None,
        where: Mapping[str, Scalar] | None = None,
    ) -> list[Hit]:
        """See `qrmem.Memory.search`."""
        return self._loop.run(self._memory.search(question, k=k, documents=documents, where=where))

    def ask(
        self,
        question: str,
        *,
        strategy: str = "reflection",
        window: int | None = None,
        choices: Sequence[str] | None = None,
        documents: Sequence[str] | None = None,
        where: Mapping[str, Scalar] | None = None,
        orientation: Orientation | None = None,
        share_orientation: bool = False,
        max_trials: int = 5,
        start: Literal["search", "entities"] = "search",
        on_exhausted: Literal["abstain", "force"] = "abstain",
        keep_trail: bool | None = None,
        fragments: "FragmentSettings | None" = None,
        **caps: Unpack[CapOptions],
    ) -> Answer:
        """See `qrmem.Memory.ask`."""
        return self._loop.run(
            self._memory.ask(
                question,
                strategy=strategy,
                window=window,
                choices=choices,
                documents=documents,
                where=where,
                orientation=orientation,
                share_orientation=share_orientation,
                max_trials=max_trials,
                start=start,
                on_exhausted=on_exhausted,
                keep_trail=keep_trail,
                **caps,
                fragments=fragments,
            )
        )

    def stream(
        self, question: str, *, words: bool = False, **options: Any
    ) -> Iterator[Step | Words | Answer]:
        """See `qrmem.Memory.stream`."""
        steps = self._memory.stream(question, words=words, **options)
        while (item := self._loop.run(_next(steps))) is not None:
            yield item

    def plan(
        self, source: Source | None = None, *, ask: str | None = None, **options: Any
    ) -> "Plan":
        """See `qrmem.Memory.plan`."""
        return self._loop.run(self._memory.plan(source, ask=ask, **options))

    def status(self) -> MemoryStatus:
        """See `qrmem.Memory.status`."""
        return self._loop.run(self._memory.status())

    def usage(self, by: By = "stage") -> Sequence[UsageRow]:
        """See `qrmem.Memory.usage`."""
        return self._loop.run(self._memory.usage(by))

    def namespaces(self) -> Sequence[str]:
        """See `qrmem.Memory.namespaces`."""
        return self._loop.run(self._memory.namespaces())

    def documents(self, where: Mapping[str, Scalar] | None = None) -> Sequence[DocumentInfo]:
        """See `qrmem.Memory.documents`."""
        return self._loop.run(self._memory.documents(where))

    def document(self, document_id: str) -> Document:
        """See `qrmem.Memory.document`."""
        return self._loop.run(self._memory.document(document_id))

    def entities(self, limit: int = 100) -> Sequence[facade.EntityCount]:
        """See `qrmem.Memory.entities`."""
        return self._loop.run(self._memory.entities(limit))

    def entity(self, name: str) -> EntityView:
        """See `qrmem.Memory.entity`."""
        return self._loop.run(self._memory.entity(name))

    def merges(self) -> Sequence[Merge]:
        """See `qrmem.Memory.merges`."""
        return self._loop.run(self._memory.merges())

    def merge(self, first: str, second: str) -> None:
        """See `qrmem.Memory.merge`."""
        self._loop.run(self._memory.merge(first, second))

    def separate(self, first: str, second: str) -> None:
        """See `qrmem.Memory.separate`."""
        self._loop.run(self._memory.separate(first, second))

    def trail(self, trail_id: str | None = None) -> Trail:
        """See `qrmem.Memory.trail`."""
        return self._loop.run(self._memory.trail(trail_id))

    def trails(self, limit: int = 20) -> Sequence[Trail]:
        """See `qrmem.Memory.trails`."""
        return self._loop.run(self._memory.trails(limit))

    def load(self, path: str | PathLike[str]) -> Archived:
        """See `qrmem.Memory.load`."""
        return self._loop.run(self._memory.load(path))

    def load_openie(self, path: str | PathLike[str]) -> ExtractionReport:
        """See `qrmem.Memory.load_openie`."""
        return self._loop.run(self._memory.load_openie(path))

    def delete(self, *document_ids: str) -> None:
        """See `qrmem.Memory.delete`."""
        self._loop.run(self._memory.delete(*document_ids))

    def delete_all(self) -> None:
        """See `qrmem.Memory.delete_all`."""
        self._loop.run(self._memory.delete_all())

    def prune(self) -> int:
        """See `qrmem.Memory.prune`."""
        return self._loop.run(self._memory.prune())

    def reembed(self, embedder: str, **caps: Unpack[CapOptions]) -> int:
        """See `qrmem.Memory.reembed`."""
        return self._loop.run(self._memory.reembed(embedder, **caps))

    def export(self, path: str | PathLike[str], *, runs: bool = False) -> Archived:
        """See `qrmem.Memory.export`."""
        return self._loop.run(self._memory.export(path, runs=runs))

    def neo4j_queries(self, name: str = "") -> "Sequence[SavedQuery]":
        """See `qrmem.Memory.neo4j_queries`."""
        return self._loop.run(self._memory.neo4j_queries(name))

    def graphml(self, path: str) -> int:
        """See `qrmem.Memory.graphml`."""
        return self._loop.run(self._memory.graphml(path))


async def _opened(*args: Any, **kwargs: Any) -> facade.Memory:
    return await facade.open(*args, **kwargs)


async def _next(steps: Any) -> Step | Words | Answer | None:
    item: Step | Words | Answer | None = await anext(steps, None)
    return item
