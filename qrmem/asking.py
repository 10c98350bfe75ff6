"""One `ask`: the strategy is run, its outcome becomes an answer with a trail."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from qrmem.agents import AskDeps, AskOptions, Outcome, run_strategy
from qrmem.errors import UsageError
from qrmem.graphstore.aside import Aside
from qrmem.graphstore.protocol import GraphStore
from qrmem.llm.caps import Caps
from qrmem.retrieval.searcher import Searcher
from qrmem.retrieval.similarity import EdgeScorer
from qrmem.session import Models, Run, Session
from qrmem.types import Answer, AskContext, Event, Listener, Orientation, Scalar, Step, Trail, Words

if TYPE_CHECKING:
    from qrmem.memory import Memory
    from qrmem.retrieval.fragments import FragmentScorer, FragmentSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A question with everything that was chosen for it; see `Memory.ask`.

    Attributes:
        reflection: see `qrmem.agents.AskOptions`; only evaluation turns it off, as `navigation`.
    """

    question: str
    strategy: str
    window: int
    choices: tuple[str, ...]
    documents: frozenset[str] | None
    orientation: Orientation
    share_orientation: bool
    max_trials: int
    start: Literal["search", "entities"]
    on_exhausted: Literal["abstain", "force"]
    fragments: "FragmentSettings | None" = None
    reflection: bool = True
    navigation: bool = True

    def __post_init__(self) -> None:
        for name, allowed in _ALLOWED.items():
            if getattr(self, name) not in allowed:
                chosen = getattr(self, name)
                raise UsageError(f"{name} is {chosen!r}; choose one of {', '.join(allowed)}")
        if not self.question.strip():
            raise UsageError("the question is empty")
        if len(self.choices) == 1 or len(set(self.choices)) != len(self.choices):
            raise UsageError("give at least two choices, all different")
        if not all(choice.strip() for choice in self.choices):
            raise UsageError("a choice is empty")
        if self.max_trials < 1:
            raise UsageError("at least one trial is needed")
        if self.orientation == "full":
            raise UsageError("orientation full shapes a memory while it is built: add(question=…)")


_ALLOWED: Mapping[str, tuple[str, ...]] = {
    "start": ("search", "entities"),
    "on_exhausted": ("abstain", "force"),
    "orientation": get_args(Orientation),
}


class Asker:
    """Answers questions over one namespace."""

    def __init__(
        self,
        store: GraphStore,
        ns: str,
        tools: Models,
        searcher: Searcher,
        listener: Listener,
        fragments: "FragmentScorer | None" = None,
        caps: Caps | None = None,
        *,
        is_watched: bool = False,
    ) -> None:
        self._caps = caps
        self._is_watched = is_watched
        self._fragments = fragments
        self._aside = Aside(store, listener)
        self._store = store
        self._ns = ns
        self._tools = tools
        self._searcher = searcher
        self._listener = listener

    async def ask(self, asking: Asking) -> Answer:
        """Run the strategy and make an answer of its outcome."""
        run = self._tools.run(
            "online", self._listener, self._aside, self._caps, is_watched=self._is_watched
        )
        searcher = await self._searcher.on_account(run.embedder)
        deps = AskDeps(
            store=self._store,
            ns=self._ns,
            reasoner=run.reasoner,
            searcher=searcher,
            scorer=EdgeScorer(
                self._store, self._ns, run.embedder, searcher=searcher, aside=self._aside
            ),
            tagger=self._tools.tagger(run.reasoner) if asking.orientation == "local" else None,
            listener=self._listener,
            concurrency=self._tools.settings.concurrency,
            folded_by_reasoner=self._tools.settings.mode == "paper",
            fragments=self._fragments,
            aside=self._aside,
        )
        context = AskContext(asking.question, asking.choices, asking.window)
        options = AskOptions(
            max_trials=asking.max_trials,
            start=asking.start,
            on_exhausted=asking.on_exhausted,
            orient=asking.orientation == "local",
            share_orientation=asking.share_orientation,
            documents=asking.documents,
            fragments=asking.fragments,
            reflection=asking.reflection,
            navigation=asking.navigation,
        )
        try:
            outcome = await run_strategy(deps, context, asking.strategy, options)
        finally:
            if run.calls:
                await self._aside.write(lambda: self._store.put_calls(self._ns, run.calls))
        return _answer(asking, outcome, run)

    async def kept(self, answer: Answer) -> Answer:
        """Write an answer's trail to the store, under an id of its own."""
        created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        trail = replace(answer.trail, id=uuid.uuid4().hex[:12], created=created)
        if self._store.is_read_only:
            message = f"{self._store.location} is read-only: no trail is kept"
            self._listener(Event("warning", {"message": message}))
        await self._aside.write(lambda: self._store.put_trail(self._ns, trail))
        return replace(answer, trail=trail)


def _answer(asking: Asking, outcome: Outcome, run: Run) -> Answer:
    trail = Trail(
        id="",
        question=asking.question,
        strategy=asking.strategy,
        window=asking.window,
        status=outcome.status,
        answer=outcome.text,
        steps=outcome.steps,
        usage=run.usage,
        citations=outcome.citations,
        choices=asking.choices,
        reasoner=run.reasoner.name,
    )
    return Answer(
        text=outcome.text,
        status=outcome.status,
        citations=outcome.citations,
        trail=trail,
        usage=run.usage,
        choice=outcome.choice,
        reason=outcome.reason,
    )


async def asked(
    session: Session,
    question: str,
    *,
    window: int | None,
    choices: Sequence[str] | None,
    documents: Sequence[str] | None,
    where: Mapping[str, Scalar] | None,
    orientation: Orientation | None,
    **chosen: Any,
) -> Asking:
    """Return a question with all that was chosen for it, or left to the settings.

    Raises:
        UsageError: an option is not what it should be.
        NotFound: there is nothing to look at.
    """
    if isinstance(choices, str):
        raise UsageError("choices are a list of texts, not one text")
    asking = Asking(
        question=question,
        window=session.settings.window if window is None else window,
        choices=tuple(choices or ()),
        documents=None,
        orientation=orientation or session.settings.orientation,
        **chosen,
    )
    return replace(asking, documents=await session.readable(documents, where))


async def answered(
    session: Session,
    asking: Asking,
    listener: Listener,
    caps: Caps,
    *,
    keep_trail: bool,
    is_watched: bool,
) -> Answer:
    """Answer a question; see `Memory.ask`."""
    if unread := await session.unread(asking.documents):
        listener(Event("warning", {"message": unread}))
    asker = Asker(
        session.store,
        session.ns,
        await session.models(),
        await session.searcher(),
        listener,
        await session.fragment_scorer(),
        caps,
        is_watched=is_watched,
    )
    answer = await asker.ask(asking)
    return await asker.kept(answer) if keep_trail else answer


async def streamed(
    memory: "Memory", question: str, options: Mapping[str, Any], *, words: bool
) -> AsyncIterator[Step | Words | Answer]:
    """Yield the steps of `memory.ask`, and the words of replies, as they come; then the answer."""
    queue: asyncio.Queue[Step | Words | None] = asyncio.Queue()

    def listen(event: Event) -> None:
        if event.kind == "step":
            queue.put_nowait(event.data["step"])
        elif event.kind == "words":
            queue.put_nowait(Words(event.data["field"], event.data["text"]))

    listened = memory.listening(listen, words=words)
    task = asyncio.create_task(listened.ask(question, **options))
    task.add_done_callback(lambda _: queue.put_nowait(None))
    try:
        while (item := await queue.get()) is not None:
            yield item
        yield await task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(task, return_exceptions=True)
