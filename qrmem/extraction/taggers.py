"""External taggers by the setting `tagger`: started on first use, with time limits."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol, TypeVar
from urllib.parse import urlsplit

from qrmem.config import Settings, revealed, shown
from qrmem.errors import MissingError, TaggerUnavailable, UsageError
from qrmem.extraction.rules_tagger import RulesTagger, gathered
from qrmem.extraction.stanza_taggers import CorenlpEngine, StanzaEngine, require_stanza
from qrmem.types import EntityTagger, Mention

T = TypeVar("T")

_EDGES = " \t\n,;:"
PATIENCE = 3
"""Number of successive timeouts after which a tagger is not used any more."""


class Engine(Protocol):
    """A tagging engine; its methods block and are called from worker threads."""

    @property
    def name(self) -> str:
        """Its name in the settings, without machine-specific parts."""
        ...

    @property
    def threads(self) -> int:
        """Maximum number of segments at the same time."""
        ...

    def start(self) -> None:
        """Start; called once, before any other method.

        Raises:
            MissingError: something that it needs is not installed.
            TaggerUnavailable: it does not start.
        """
        ...

    def spans(self, text: str) -> Iterable[tuple[int, int, str]]:
        """Return `(start, end, type)` of all names in a text.

        Raises:
            TimeoutError: it does not answer in time.
            TaggerUnavailable: it does not answer.
        """
        ...

    def stop(self) -> None:
        """Stop; may be called during `start`, and more than once."""
        ...


class ExternalTagger:
    """An `EntityTagger` around an engine, which starts with the first segment."""

    def __init__(self, engine: Engine, *, timeout: float) -> None:
        """Prepare; `timeout` is in seconds per segment."""
        self.name = engine.name
        self._engine = engine
        self._timeout = timeout
        self._pool = ThreadPoolExecutor(engine.threads, thread_name_prefix=engine.name)
        self._free = asyncio.Semaphore(engine.threads)
        self._starting: asyncio.Future[None] | None = None
        self._missed = 0

    async def tag(self, text: str) -> Sequence[Mention]:
        """Return the entities of one segment, in order of first occurrence."""
        await self._started()
        async with self._free:
            if self._missed >= PATIENCE:
                raise TaggerUnavailable(f"no answer {PATIENCE} times in a row; not used any more")
            try:
                spans = await asyncio.wait_for(self._run(self._spans, text), self._timeout)
            except TimeoutError:
                self._missed += 1
                raise TaggerUnavailable(f"no answer within {self._timeout:g} s") from None
        self._missed = 0
        return gathered(text, spans).mentions

    async def close(self) -> None:
        """Stop the engine."""
        if self._starting is None:
            return
        # This ends an engine that is still starting; one that has started is stopped below.
        await asyncio.to_thread(self._engine.stop)
        with suppress(Exception):
            await self._starting
        await asyncio.to_thread(self._engine.stop)
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _started(self) -> None:
        if self._starting is None:
            self._starting = self._run(self._engine.start)
        # Cancelling one segment must not cancel the start, which others wait for.
        await asyncio.shield(self._starting)

    def _spans(self, text: str) -> list[tuple[int, int, str]]:
        spans = []
        for start, end, kind in self._engine.spans(text):
            name = text[start:end]
            if bare := name.strip(_EDGES):  # CoreNLP finds ", 7" in "on Sunday, 7 March"
                first = start + name.index(bare)
                spans.append((first, first + len(bare), kind))
        return spans

    def _run(self, work: Callable[..., T], *arguments: object) -> "asyncio.Future[T]":
        return asyncio.get_running_loop().run_in_executor(self._pool, work, *arguments)


# The tagger of a setting.


def open_tagger(settings: Settings) -> EntityTagger:
    """Return the entity tagger that the settings name; it is not started yet.

    Raises:
        UsageError: no tagger has that name.
        MissingError: its location is not set, or the extra is not installed.
    """
    kind, _, where = revealed(settings.tagger).partition(":")
    if settings.tagger in ("auto", "rules"):
        return RulesTagger()
    if kind == "corenlp":
        engine: Engine = _corenlp(where, settings)
    elif kind == "stanza":
        engine = _stanza(where or settings.stanza_models)
    else:
        raise UsageError(
            f"no tagger is called {settings.tagger!r}; there are: auto, none, rules, corenlp, "
            "corenlp:URL, stanza, stanza:FOLDER"
        )
    require_stanza()
    return ExternalTagger(engine, timeout=settings.tagger_timeout)


def _corenlp(url: str, settings: Settings) -> CorenlpEngine:
    if url:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"{shown(url)!r} is not the address of a CoreNLP server: http://HOST:PORT"
            )
        return CorenlpEngine(url=url, timeout=settings.tagger_timeout)
    if settings.corenlp_home:
        return CorenlpEngine(home=settings.corenlp_home, timeout=settings.tagger_timeout)
    raise MissingError(
        "CoreNLP is not configured: set CORENLP_HOME to the folder of its jars, and qrmem starts "
        "it; or give a running server: --tagger corenlp:http://localhost:9000"
    )


def _stanza(folder: str) -> StanzaEngine:
    if folder:
        return StanzaEngine(folder)
    raise MissingError(
        "no folder of Stanza's models is named: --tagger stanza:FOLDER, or STANZA_RESOURCES_DIR"
    )
