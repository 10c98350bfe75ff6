"""Extract facts from turns with a chat model, in the background, as short sentences.

A fact is a separate document with the metadata of its turn, and is read without a model. So it is
found, recalled, exported and forgotten like a turn, and deleted with its turn.
"""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

from qrmem.answering.with_model import PromptedReasoner
from qrmem.errors import (
    CapReached,
    ContextExceeded,
    OutOfReach,
    QrmemError,
    StoreConflict,
    UsageError,
    WindowTooSmall,
)
from qrmem.graphstore import GraphStore
from qrmem.llm.run import Run
from qrmem.llm.totals import together
from qrmem.memory.add import Adder
from qrmem.memory.chat import stored_turns
from qrmem.memory.runtime import caps_of
from qrmem.memory.session import Session
from qrmem.types import AddReport, Document, Event, Listener, Turn, Usage
from qrmem.types.options import AddOptions
from qrmem.types.turns import FACT_KEY, fact_id, turn_id

TOGETHER = 8
"""Maximum number of turns in a call."""
EARLIER = 4
"""Number of earlier turns that the model sees, too."""


class Facts:
    """Extracts facts from turns while the memory is open, one call after another.

    Turns that wait together form one run; the settings' caps apply to it.
    """

    def __init__(self, session: Session, listener: Listener) -> None:
        self._session = session
        self._listener = listener
        self._waiting: list[Turn] = []
        self._task: asyncio.Task[None] | None = None
        self._used: list[Usage] = []
        self._added: list[str] = []
        self._problems: list[tuple[str, int, str]] = []
        self._read = 0
        self._stopped = ""
        self._began = time.monotonic()

    async def require_model(self) -> None:
        """Refuse to extract facts without a chat model, before the turns are stored.

        Raises:
            UsageError: no chat model is set.
        """
        await self._begin_run()

    async def _begin_run(self) -> tuple[Run, PromptedReasoner]:
        """Begin a run with the memory's present models."""
        models = await self._session.models(create=True)
        caps = caps_of(self._session.settings)
        run = models.run("construction", self._listener, caps=caps)
        if not isinstance(run.reasoner, PromptedReasoner):
            raise UsageError(
                "extracting facts needs a chat model: name one with --model or QRMEM_MODEL"
            )
        return run, run.reasoner

    def take(self, turns: Iterable[Turn]) -> None:
        """Extract facts from some turns as soon as possible."""
        self._waiting += turns
        if self._waiting and self._task is None:
            if not self._used:
                self._began = time.monotonic()
            self._task = asyncio.create_task(self._work())

    async def rest(self) -> None:
        """Wait until no turn is left."""
        while self._task is not None:
            # Cancelling the caller does not end the work: `close` waits for it.
            await asyncio.shield(self._task)

    async def wait(self) -> AddReport:
        """Return the facts extracted since the last call, once no turn waits."""
        await self.rest()
        report = AddReport(
            added=tuple(self._added),
            updated=(),
            unchanged=(),
            read=self._read,
            reused=0,
            states={},
            problems=tuple(self._problems),
            usage=together(self._used),
            seconds=time.monotonic() - self._began,
            stopped=self._stopped,
        )
        self._added, self._problems, self._read, self._stopped = [], [], 0, ""
        self._used = []
        return report

    async def _work(self) -> None:
        try:
            run, reasoner = await self._begin_run()
            try:
                most = TOGETHER
                while self._waiting:
                    batch, self._waiting = self._waiting[:most], self._waiting[most:]
                    most = await self._try(run, reasoner, batch)
            finally:
                self._used.append(run.usage)
        except QrmemError as exc:  # the models are closed
            self._lose(self._waiting, exc)
            self._waiting = []
        finally:
            self._task = None

    async def _try(self, run: Run, reasoner: PromptedReasoner, batch: Sequence[Turn]) -> int:
        """Extract the facts of some turns; return how many turns to try next.

        Turns that do not fit into a call wait again, and half of them are tried next.
        """
        try:
            await self._draw(run, reasoner, batch)
        except (WindowTooSmall, ContextExceeded) as exc:
            if len(batch) > 1:
                self._waiting = [*batch, *self._waiting]
                return len(batch) // 2
            self._lose(batch, exc)
        except (OutOfReach, CapReached) as exc:
            # The waiting turns would fail, too.
            self._lose([*batch, *self._waiting], exc)
            self._waiting = []
            self._stopped = str(exc) if isinstance(exc, CapReached) else ""
        except QrmemError as exc:
            self._lose(batch, exc)
        return TOGETHER

    def _lose(self, turns: Sequence[Turn], error: QrmemError) -> None:
        self._problems += [(turn.id, -1, str(error)) for turn in turns]
        message = f"no facts of {turns[0].id}" + (f" to {turns[-1].id}" if len(turns) > 1 else "")
        self._warn(f"{message}: {error}")

    def _warn(self, message: str) -> None:
        self._listener(Event("warning", {"what": "facts", "message": message}))

    async def _draw(self, run: Run, reasoner: PromptedReasoner, batch: Sequence[Turn]) -> None:
        session = self._session
        store, ns = session.store, session.ns
        segment_of = {
            s.document_id: s.id for s in await store.segments(ns, documents=[t.id for t in batch])
        }
        # Without turns that were deleted meanwhile.
        turns = [turn for turn in batch if turn.id in segment_of]
        if not turns:
            return
        try:
            segments = [segment_of[turn.id] for turn in turns]
            earlier = await self._earlier(turns[0])
            facts_by_turn, shown = await reasoner.facts(earlier, turns, segments)
        finally:
            await store.record(ns, (), run.take_all())
        documents = [
            fact_document(turn, n, text)
            for turn, facts in zip(turns, facts_by_turn, strict=True)
            for n, text in enumerate(facts, 1)
        ]
        if documents:
            models = await session.models()
            options = AddOptions(update=True)
            adder = Adder(store, ns, models, self._listener, options, is_chat=True)
            with session.adding():
                report = await adder.add(documents)
            self._added += [*report.added, *report.updated, *report.unchanged]
            self._problems += report.problems
            if {one.id for one in documents} - {*report.added, *report.updated, *report.unchanged}:
                raise StoreConflict("they were not stored; `extract_facts` extracts them again")
        for turn, facts in zip(turns, facts_by_turn, strict=True):
            value = {"facts": len(facts)}
            await store.put_cache_entry(
                ns, "facts", key(turn.id), value, segments=[segment_of[turn.id]]
            )
        self._read += len(turns)
        if shown < (length := sum(len(turn.text) for turn in turns)):
            problem = f"only its first {shown:,} of {length:,} characters fit the window"
            self._problems.append((turns[0].id, 0, problem))
            self._warn(f"facts of a part of {turns[0].id}: {problem}")

    async def _earlier(self, first: Turn) -> list[Turn]:
        """Return the earlier turns of the session and user."""
        session = self._session
        numbers = range(max(1, first.number - EARLIER), first.number)
        ids = [turn_id(number) for number in numbers]
        infos = await stored_turns.turn_infos(session.store, session.ns, ids)
        turns = await stored_turns.read_turns(session.store, session.ns, infos)
        return [t for t in turns if (t.session, t.user) == (first.session, first.user)]


def key(turn_id: str) -> str:
    """Return the key of the row that records the extraction of a turn's facts."""
    return f"facts:{turn_id}"


def fact_document(turn: Turn, n: int, text: str) -> Document:
    """Return the document for the n-th fact of a turn, n from 1."""
    document = stored_turns.as_document(replace(turn, text=text, id=fact_id(turn.number, n)))
    metadata = {**document.metadata, FACT_KEY: turn.id}
    return replace(document, title=f"noted of {document.title}", metadata=metadata)


async def without_facts(store: GraphStore, ns: str, turns: Sequence[Turn]) -> list[Turn]:
    """Return the turns whose facts were not extracted yet."""
    with_facts = {
        entry.key
        for entry in await store.cache_entries(ns, "facts", [key(turn.id) for turn in turns])
    }
    return [turn for turn in turns if key(turn.id) not in with_facts]


def drawing(memory: Session, listener: Listener) -> Facts:
    """Return the extractor of facts; the same one while the memory is open.

    Raises:
        UsageError: the memory is closed.
    """
    _ = memory.store
    if not isinstance(memory.facts, Facts):
        memory.facts = Facts(memory, listener)
    return memory.facts


async def extract_facts(memory: Session, listener: Listener, said: Sequence[Turn]) -> AddReport:
    """Extract facts from turns that have none yet; see `Memory.extract_facts`."""
    drawing_facts = drawing(memory, listener)
    await drawing_facts.require_model()
    await drawing_facts.wait()
    drawing_facts.take(await without_facts(memory.store, memory.ns, said))
    return await drawing_facts.wait()
