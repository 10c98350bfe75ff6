"""One `ask`: a strategy is followed, and what it finds becomes an answer with a trail."""

import time
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from qrmem.agents import Asking, Outcome, Search, run_strategy
from qrmem.agents.search.checkpoints import config_of, interrupted
from qrmem.agents.strategies import require_strategy
from qrmem.errors import UsageError
from qrmem.graphstore.aside import Aside
from qrmem.graphstore.protocol import GraphStore
from qrmem.llm.budget import Caps
from qrmem.memory.models import Models, Run
from qrmem.memory.session import Session
from qrmem.retrieval.searcher import Searcher
from qrmem.retrieval.similarity import EdgeScorer
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


@dataclass(frozen=True, slots=True)
class Asker:
    """Answers questions over one namespace, with the parts of an open memory.

    Attributes:
        caps: of each run; those of the settings where there are none.
        is_watched: tell of answers as they are written.
    """

    store: GraphStore
    ns: str
    models: Models
    searcher: Searcher
    listener: Listener
    fragments: "FragmentScorer | None" = None
    caps: Caps | None = None
    is_watched: bool = False

    async def ask(self, asking: Asking) -> Answer:
        """Answer a question."""
        return await answer_of(self.stream(asking))

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
        aside = Aside(self.store, self.listener)

        def listen(event: Event) -> None:
            self.listener(event)
            if event.kind == "words" and search is not None:
                search.show(Words(event.data["field"], event.data["text"]))

        run = self.models.run("online", listen, aside, self.caps, is_watched=self.is_watched)
        running.add(thread)
        try:
            search = self._search(asking, run, aside)
            items = await run_strategy(search, checkpointer=checkpointer, config=config)
            async with aclosing(items) as found:
                async for item in found:
                    if not isinstance(item, Outcome):
                        yield item
                        continue
                    answer = _answer(asking, item, run.reasoner.name, thread)
                    if keep_trail:
                        if self.store.is_read_only:
                            message = f"{self.store.location} is read-only: no trail is kept"
                            self.listener(Event("warning", {"message": message}))
                        await aside.write(partial(self._put, answer.trail))
                    yield answer
        finally:
            running.discard(thread)
            if run.calls:
                await aside.write(lambda: self.store.record(self.ns, (), run.calls))

    def _search(self, asking: Asking, run: Run, aside: Aside) -> Search:
        """Return what all steps of the run are handed."""
        searcher = self.searcher.on_account(run.embedder)
        is_read_again = asking.orientation == "local"
        return Search(
            store=self.store,
            ns=self.ns,
            reasoner=run.reasoner,
            searcher=searcher,
            scorer=EdgeScorer(searcher, aside),
            asking=asking,
            tagger=self.models.tagger(run.reasoner) if is_read_again else None,
            listener=self.listener,
            concurrency=self.models.settings.concurrency,
            folded_by_reasoner=self.models.settings.mode == "paper",
            fragments=self.fragments,
            aside=aside,
            usage=lambda: run.usage,
            caller=run.caller,
            embedder=run.embedder,
            count=self.models.counter.count,
        )

    async def _put(self, trail: Trail) -> None:
        """Write a trail, dated no earlier than the last one: a clock may have been set back."""
        last = await self.store.trails(self.ns, 1)
        created = max([trail.created, *(kept.created for kept in last)])
        await self.store.put_trail(self.ns, replace(trail, created=created))


async def answer_of(items: AsyncGenerator[Step | Words | Answer, None]) -> Answer:
    """Return the answer that a stream ends with."""
    answer: Answer | None = None
    async with aclosing(items) as told:
        async for item in told:
            answer = item if isinstance(item, Answer) else answer
    assert answer is not None
    return answer


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


__all__ = ["Asker", "Asking", "answer_of", "asked", "streamed"]
