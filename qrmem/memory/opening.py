"""Opening a memory: `await` it or use it in `async with`."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from qrmem.config import Settings, revealed
from qrmem.errors import UsageError
from qrmem.memory.facade import Memory
from qrmem.memory.keywords import OpenOptions
from qrmem.memory.runtime import check_embedder
from qrmem.types import Listener

if TYPE_CHECKING:
    from qrmem.graphstore import GraphStore


def open(
    memory: str | None = None,
    *,
    namespace: str | None = None,
    settings: Settings | None = None,
    create: bool = True,
    listener: Listener | None = None,
    **chosen: Unpack[OpenOptions],
) -> "Opening":
    """Open a memory; `await` it or use it in `async with` (that of `qrmem.sync` in `with`).

    Args:
        memory: a path, `sqlite://…`, `neo4j://…`, `bolt://…` or `memory://`.
        settings: used instead of those of the environment and the settings file.
        create: whether to create a database that does not exist.
        listener: gets the events of all runs (progress, steps, calls, warnings).
        chosen: any field of `Settings`, such as `model=`, `base_url=`, `embedder=`.

    Raises (when awaited):
        UsageError: a setting or a prompt template is wrong, or the file is not a database.
        NotFound: the database does not exist, with `create=False`.
        EmbedderMismatch: the namespace was embedded by another model.
        OutOfReach: the store does not answer.
    """

    def load() -> Settings:
        base = settings or Settings.from_env()
        return base.with_(memory=memory, namespace=namespace, **chosen)

    return Opening(load, create=create, listener=listener)


_UNOPENED = "`async with qrmem.open(…) as memory` or `await`; `qrmem.sync.open` needs neither"


class Opening:
    """A memory that is not open yet."""

    def __init__(
        self, load: Callable[[], Settings], *, create: bool, listener: Listener | None
    ) -> None:
        self._load = load
        self._create = create
        self._listener = listener
        self._memory: Memory | None = None

    def __repr__(self) -> str:
        return f"<a memory that is not open yet: {_UNOPENED}>"

    def __getattr__(self, name: str) -> Any:
        """Raise an error that says how to open the memory."""
        advice = f": {_UNOPENED}" if hasattr(Memory, name) else ""
        raise AttributeError(f"the memory is not open, so it has no {name!r}{advice}")

    def __enter__(self) -> NoReturn:
        raise UsageError(f"write {_UNOPENED}")

    def __exit__(self, *exc: object) -> None:
        pass  # never entered

    def __await__(self) -> Generator[Any, None, "Memory"]:
        return self.open().__await__()

    async def __aenter__(self) -> "Memory":
        self._memory = await self.open()
        return self._memory

    async def __aexit__(self, *exc: object) -> None:
        if self._memory is not None:
            await self._memory.close()

    async def open(self) -> "Memory":
        """Open it; see `open`."""
        from qrmem.graph.superseding import Shown
        from qrmem.graphstore import missing_file, open_store, withdraw

        # Files are read in a thread, so that a server's event loop can do other work.
        settings = await asyncio.to_thread(self._settings)
        address = revealed(settings.memory)
        path = await asyncio.to_thread(missing_file, address)
        opening = asyncio.ensure_future(
            open_store(address, settings, create=self._create, superseding=Shown())
        )
        try:
            store = await (opening if path is None else asyncio.shield(opening))
        except BaseException:
            if path is not None:  # for example on a full disk, or after a cancellation
                await _ended(opening)
                await withdraw(path)
            raise
        memory = Memory(store, settings, self._listener, made=path)
        try:
            check_embedder(settings, await store.namespace(settings.namespace))
        except BaseException:
            await memory.close()
            raise
        return memory

    def _settings(self) -> Settings:
        settings = self._load()
        if settings.replay:
            from qrmem.llm.routing import as_recorded

            settings = as_recorded(settings)
        if settings.prompts:
            from qrmem.prompts import load_prompts

            load_prompts(settings.prompts)
        if settings.schema:
            from qrmem.schema import load_schema

            settings = settings.with_(schema=load_schema(settings.schema))
        return settings


async def _ended(opening: "asyncio.Future[GraphStore]") -> None:
    """Wait for an opening that creates a file, since a cancellation does not end it; close it."""
    while not opening.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([opening])
    if not opening.cancelled() and opening.exception() is None:
        await opening.result().close()


__all__ = ["Opening", "open"]
