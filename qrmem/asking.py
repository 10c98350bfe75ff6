"""One `ask`: a strategy is followed, and what it finds becomes an answer with a trail."""

import time
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from qrmem.agents import Asking, Outcome, Search, run_strategy
from qrmem.agents.search.checkpoints import config_of, interrupted
from qrmem.agents.strategies import require_strategy
from qrmem.errors import UsageError
from qrmem.graphstore.aside import Aside
from qrmem.graphstore.protocol import GraphStore
from qrmem.llm.budget import Caps
from qrmem.models import Models
from qrmem.retrieval.searcher import Searcher
from qrmem.retrieval.similarity import EdgeScorer
from qrmem.session import Session
from qrmem.types import Answer, Event, Listener, Orientation, Scalar, Step, Trail, Words

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

    from qrmem.retrieval.fragments import FragmentScorer


async def asked(
    session: Session,
    question: str,
    *,
    strategy: str | None,
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
    require_strategy(strategy or "")
    asking = Asking(
        question=question,
        strategy=strategy or "",
        window=window or session.settings.window,
        choices=tuple(choices or ()),
        orientation=orientation or session.settings.orientation,
        paper_exact=session.settings.paper_exact,
        **chosen,
    )
    return replace(asking, documents=await session.readable(documents, where))


async def streamed(
    session: Session,
    asking: Asking,
    listener: Listener,
    caps: Caps,
    *,
    keep_trail: bool,
    is_watched: bool = False,
    checkpointer: "BaseCheckpointSaver[Any] | None" = None,
) -> AsyncGenerator[Step | Words | Answer, None]:
    """Return the steps of an answer, and words as a model writes them, then the answer.

    Args:
        is_watched: whether words are wanted.
        checkpointer: see `Memory.ask`.
    """
    await session.require_any()
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
    thread = uuid.uuid4().hex[:12] if keep_trail or checkpointer else ""
    config: Mapping[str, Any] | None = None
    if checkpointer is not None:
        session.checkpointers.add(checkpointer)
        known, begun = await interrupted(checkpointer, session.ns, asking, session.running)
        thread = known or thread
        config = config_of(session.ns, asking, thread)
        asking = replace(asking, strategy=begun or asking.strategy)
    return asker.stream(
        asking, thread, checkpointer, config, keep_trail=keep_trail, running=session.running
    )


class Asker:
    """Answers questions over one namespace."""

    def __init__(
        self,
        store: GraphStore,
        ns: str,
        models: Models,
        searcher: Searcher,
        listener: Listener,
        fragments: "FragmentScorer | None" = None,
        caps: Caps | None = None,
        *,
        is_watched: bool = False,
    ) -> None:
        """Take the parts of an open memory.

        Args:
            caps: of each run; those of the settings where there are none.
            is_watched: tell of answers as they are written.
        """
        self._caps = caps
        self._is_watched = is_watched
        self._fragments = fragments
        self._aside = Aside(store, listener)
        self._store = store
        self._ns = ns
        self._models = models
        self._searcher = searcher
        self._listener = listener

    async def ask(self, asking: Asking) -> Answer:
        """Answer a question."""
        answer: Answer | None = None
        async with aclosing(self.stream(asking)) as items:
            async for item in items:
                answer = item if isinstance(item, Answer) else answer
        assert answer is not None
        return answer

    async def stream(
        self,
        asking: Asking,
        thread: str = "",
        checkpointer: "BaseCheckpointSaver[Any] | None" = None,
        config: Mapping[str, Any] | None = None,
        *,
        keep_trail: bool = False,
        running: set[str] | None = None,
    ) -> AsyncGenerator[Step | Words | Answer, None]:
        """Yield what the strategy does as it does it, then the answer.

        Args:
            thread: id of the trail, and of the checkpointer's thread; "" for a trail without id.
            config: LangGraph's, for the checkpointer.
            keep_trail: write it to the store before the answer is given.
            running: has the thread's id from the first step to the end.
        """
        search: Search | None = None
        running = set() if running is None else running

        def listen(event: Event) -> None:
            self._listener(event)
            if event.kind == "words" and search is not None:
                search.show(Words(event.data["field"], event.data["text"]))

        run = self._models.run(
            "online", listen, self._aside, self._caps, is_watched=self._is_watched
        )
        searcher = self._searcher.on_account(run.embedder)
        scorer = EdgeScorer(
            self._store, self._ns, run.embedder, searcher=searcher, aside=self._aside
        )
        running.add(thread)
        try:
            search = Search(
                store=self._store,
                ns=self._ns,
                reasoner=run.reasoner,
                searcher=searcher,
                scorer=scorer,
                asking=asking,
                tagger=self._models.tagger(run.reasoner) if _reads(asking) else None,
                listener=self._listener,
                concurrency=self._models.settings.concurrency,
                folded_by_reasoner=self._models.settings.mode == "paper",
                fragments=self._fragments,
                aside=self._aside,
                usage=lambda: run.usage,
                caller=run.caller,
                embedder=run.embedder,
                count=self._models.counter.count,
            )
            items = await run_strategy(search, checkpointer=checkpointer, config=config)
            async with aclosing(items) as found:
                async for item in found:
                    if not isinstance(item, Outcome):
                        yield item
                        continue
                    answer = _answer(asking, item, run.reasoner.name, thread)
                    if keep_trail:
                        await self._keep(answer)
                    yield answer
        finally:
            running.discard(thread)
            if run.calls:
                await self._aside.write(lambda: self._store.record(self._ns, (), run.calls))

    async def _keep(self, answer: Answer) -> None:
        """Write an answer's trail to the store."""
        if self._store.is_read_only:
            message = f"{self._store.location} is read-only: no trail is kept"
            self._listener(Event("warning", {"message": message}))
        await self._aside.write(lambda: self._put(answer.trail))

    async def _put(self, trail: Trail) -> None:
        """Write a trail, dated no earlier than the last one: a clock may have been set back."""
        last = await self._store.trails(self._ns, 1)
        created = max([trail.created, *(kept.created for kept in last)])
        await self._store.put_trail(self._ns, replace(trail, created=created))


def _reads(asking: Asking) -> bool:
    """Whether segments are read again with the question."""
    return asking.orientation == "local"


def _answer(asking: Asking, outcome: Outcome, reasoner: str, thread: str) -> Answer:
    trail = Trail(
        id=thread,
        question=asking.question,
        strategy=outcome.strategy,
        window=asking.window,
        status=outcome.status,
        answer=outcome.text,
        steps=outcome.steps,
        usage=outcome.usage,
        citations=outcome.citations,
        choices=asking.choices,
        reasoner=reasoner,
        created=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) if thread else "",
    )
    return Answer(
        text=outcome.text,
        status=outcome.status,
        citations=outcome.citations,
        trail=trail,
        usage=outcome.usage,
        choice=outcome.choice,
        reason=outcome.reason,
    )


__all__ = ["Asker", "Asking", "asked", "streamed"]
