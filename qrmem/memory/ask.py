"""Search, and the run of one `ask`: its strategy gives an answer with a trail."""

import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING

from qrmem.errors import require_text
from qrmem.graphstore.reads import BestEffortWriter
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.memory import observability
from qrmem.memory.add_state import IngestState
from qrmem.memory.runtime import Models, caps_of, open_budget
from qrmem.memory.session import Session
from qrmem.memory.statements import ended_in
from qrmem.text.dates import as_of_moment
from qrmem.text.identifiers import has_identifier, identifier
from qrmem.text.normalise import normalise_where
from qrmem.text.words import cut_note, searched, terms
from qrmem.types import Answer, CallRecord, Event, Hit, Listener, Step, Trail, Where, Words
from qrmem.types.options import AskOptions
from qrmem.types.turns import USER_KEY

if TYPE_CHECKING:
    from qrmem.agents import Outcome, Search
    from qrmem.llm.reranking import Scorer
    from qrmem.retrieval.fragments import FragmentScorer
    from qrmem.retrieval.searcher import Searcher

AnswerItems = AsyncGenerator[Step | Words | Answer, None]
"""Steps, and words that a model writes; the answer comes last."""
_ALL = 2**31 - 1
LOOKED_AT = 4
"""Number of read segments that are checked to find out how the memory was read."""


async def search(
    session: Session,
    question: str,
    listener: Listener,
    *,
    k: int,
    documents: Sequence[str] | None,
    where: Where | None,
    types: Sequence[str] | None = None,
    as_of: str | date = "",
    reranker: str = "",
) -> list[Hit]:
    """Rank segments for a question; see `Memory.search`."""
    narrowed = await session.readable(documents, where, as_of_moment(as_of))
    require_text(question, "the query")
    note_length(question, listener)
    segments = await session.of_types(types)
    if wanted := identifier(question):
        segments = await _with_identifier(session, wanted, segments)
    async with searching(session, reranker, listener) as searcher:
        hits = await searcher.within(segments).search(question, k=k, documents=narrowed)
    if not hits:
        await session.require_any()
        if unread := await session.unread(narrowed):
            listener(Event("warning", {"message": unread}))
        return []
    from qrmem.answering.excerpts import scant, with_excerpts

    # No passage contains a third of thousands of words.
    is_whole = not cut_note(question)
    if is_whole and (miss := scant(question, (f"{hit.title} {hit.text}" for hit in hits))):
        listener(Event("warning", {"what": "miss", "message": miss}))
    ended = await ended_in(session, [h.segment_id for h in hits], narrowed, as_of_moment(as_of))
    hits = [replace(hit, ended=ended.get(hit.segment_id, ())) for hit in hits]
    return with_excerpts(searched(question), hits)


async def _with_identifier(
    session: Session, wanted: str, among: frozenset[str] | None
) -> frozenset[str]:
    """Return the segments that have an identifier, not as a part of a longer one."""
    store, ns = session.store, session.ns
    groups = [[term] for term in dict.fromkeys(terms(wanted))]
    (ids,) = await store.matching_each(ns, [groups], _ALL, among=among)
    entries = {entry.id: entry.title for entry in await store.entries(ns, ids)}
    return frozenset(
        segment.id
        for segment in await store.segments(ns, ids)
        if has_identifier(segment.text, wanted)
        or has_identifier(entries.get(segment.id, ""), wanted)
    )


@asynccontextmanager
async def searching(
    session: Session, reranker: str, listener: Listener
) -> "AsyncIterator[Searcher]":
    """Yield a searcher with a reranker whose calls are counted and recorded.

    Args:
        reranker: named as in the setting; "": the one of the settings.

    Raises:
        UsageError: money is capped, and the reranker's price is not known.
    """
    searcher, scorer = await session.searcher(), await session.reranker(reranker)
    if scorer is None:
        yield searcher
        return
    from qrmem.llm.reranking import Reranker

    calls: list[CallRecord] = []
    counter = open_tokenizer(session.settings.tokenizer)
    budget = open_budget(session.settings, calls, listener)
    try:
        yield searcher.reranked_by(Reranker(scorer, budget, counter))
    finally:
        if calls:
            writer = BestEffortWriter(session.store, listener)
            await writer.write(lambda: session.store.record(session.ns, (), calls))


def note_length(question: str, listener: Listener) -> None:
    """Warn if a question is longer than the part that a search uses."""
    if note := cut_note(question):
        listener(Event("warning", {"what": "question", "message": note}))


async def resolved(session: Session, options: AskOptions) -> AskOptions:
    """Return options in which the settings replace the missing values.

    Raises:
        NotFound: there is nothing to search.
    """
    settings = session.settings
    as_of = as_of_moment(options.as_of)
    keep_trail = settings.keep_trails if options.keep_trail is None else options.keep_trail
    return replace(
        options,
        window=options.window or settings.window,
        orientation=options.orientation or settings.orientation,
        paper_exact=settings.paper_exact,
        keep_trail=keep_trail,
        documents=await session.readable(options.documents, options.where, as_of),
        segments=await session.of_types(options.types),
        as_of=as_of,
        single_types=await session.single_types(),
        reranker=options.reranker or session.settings.reranker,
    )


async def stream(
    session: Session, options: AskOptions, listener: Listener, *, words: bool
) -> AnswerItems:
    """Run a question; yield its steps, then its answer."""
    options = await resolved(session, options)
    note_length(options.question, listener)
    answer: Answer | None = None
    about = {"namespace": session.ns, "strategy": options.strategy}
    with observability.run("ask", options.question, **about) as tell:
        search = await _begun(session, options, listener, words=words)
        async with aclosing(answers(search, session.running)) as items:
            async for item in items:
                if isinstance(item, Answer):
                    answer = item
                    tell(answer.text)
                else:
                    yield item
    # Last, and outside of the span: a caller may leave the stream once it has the answer.
    if answer is not None:
        yield answer


async def answer_of(items: AnswerItems) -> Answer:
    """Return the final answer of a stream."""
    answer: Answer | None = None
    async with aclosing(items) as every:
        async for item in every:
            answer = item if isinstance(item, Answer) else answer
    assert answer is not None
    return answer


async def _begun(
    session: Session, options: AskOptions, listener: Listener, *, words: bool
) -> "Search":
    """Return the run of a question; it resumes an interrupted run."""
    from qrmem.agents.search.state import interrupted

    await session.require_any()
    if unread := await session.unread(_ids(options)):
        listener(Event("warning", {"message": unread}))
    thread = uuid.uuid4().hex[:12] if options.keep_trail or options.checkpointer else ""
    if options.checkpointer is not None:
        session.checkpointers.add(options.checkpointer)
    interrupted_thread, begun = await interrupted(session.ns, options, session.running)
    return search_of(
        await session.models(),
        await session.searcher(),
        options,
        listener,
        scorer=await session.reranker(options.reranker),
        fragments=await session.fragment_scorer(),
        is_watched=words,
        thread=interrupted_thread or thread,
        begun=begun,
    )


def _ids(options: AskOptions) -> frozenset[str] | None:
    return None if options.documents is None else frozenset(options.documents)


def search_of(
    models: Models,
    searcher: "Searcher",
    options: AskOptions,
    listener: Listener,
    *,
    scorer: "Scorer | None" = None,
    fragments: "FragmentScorer | None" = None,
    is_watched: bool = False,
    thread: str = "",
    begun: str = "",
) -> "Search":
    """Return the run of one question; all its steps share it.

    Args:
        options: resolved ones; see `resolved`.
        scorer: the reranker that the options name, if any.
        fragments: see `Search`, like `thread` and `begun`.
        is_watched: whether to yield a model's words while it writes them.
    """
    from qrmem.agents import Search

    def listen(event: Event) -> None:
        listener(event)
        if event.kind == "words":
            shared.show(Words(event.data["field"], event.data["text"]))

    writer = BestEffortWriter(searcher.store, listener)
    caps = caps_of(models.settings, **options.caps)
    run = models.run("online", listen, writer, caps, is_watched=is_watched)
    reranker = None
    if scorer is not None:
        from qrmem.llm.reranking import Reranker

        reranker = Reranker(scorer, run.budget, run.counter)
    shared = Search(
        parts=run,
        searcher=searcher.on_account(run.embedder, reranker).within(options.segments),
        options=options,
        writer=writer,
        listener=listener,
        fragments=fragments,
        thread=thread,
        begun=begun,
    )
    if options.orientation == "local":
        shared.tagger = models.tagger(run.reasoner)
    return shared


async def answers(search: "Search", running: set[str]) -> AnswerItems:
    """Yield a strategy's steps as they happen, then the answer.

    Args:
        running: ids of running threads; this run's is among them from its first step to its end.
    """
    from qrmem.agents import Outcome, run_strategy

    running.add(search.thread)
    try:
        async with aclosing(await run_strategy(search)) as items:
            async for item in items:
                if not isinstance(item, Outcome):
                    yield item
                    continue
                answer = _answer(search, item)
                if search.options.keep_trail:
                    await _keep(search, answer.trail)
                if not search.reasoner.is_local:
                    await _look_at_readers(search, answer)
                yield answer
    finally:
        running.discard(search.thread)
        if calls := search.parts.calls:
            await search.writer.write(lambda: search.store.record(search.ns, (), calls))


async def _keep(search: "Search", trail: Trail) -> None:
    if search.store.is_read_only:
        message = f"{search.store.location} is read-only: no trail is kept"
        search.listener(Event("warning", {"message": message}))
    await search.writer.write(partial(_put, search, trail))


async def _look_at_readers(search: "Search", answer: Answer) -> None:
    """Warn a user with a model if the searched documents were read without a model."""
    state = IngestState(search.store, search.ns, is_embedded=False)
    read = [one.segment_id for step in answer.trail.steps for one in step.read]
    segments = await search.store.segments(search.ns, read[:LOOKED_AT])
    ids = list(dict.fromkeys(segment.document_id for segment in segments))
    await state.look(ids)
    readers = {name for id in ids if state.info(id) for name in state.readers(id)}
    if readers and all(name.startswith("local.") for name in readers):
        message = (
            "the memory was read by built-in rules: `qrmem add … --rebuild` reads it with the"
            " model; `qrmem plan add … --rebuild` says what that costs"
        )
        search.listener(Event("warning", {"what": "readers", "message": message}))


async def _put(search: "Search", trail: Trail) -> None:
    """Store a trail; its date is never before the last one, because a clock may be set back."""
    last = await search.store.trails(search.ns, 1)
    created = max([trail.created, *(earlier.created for earlier in last)])
    await search.store.put_trail(search.ns, replace(trail, created=created))


def _user_of(options: AskOptions) -> str:
    """Return the user to whose documents the question is limited; "" if there is none."""
    user_filter = normalise_where(options.where).get(USER_KEY, {})
    users = {*([user_filter["="]] if "=" in user_filter else ()), *user_filter.get("in", ())}
    return str(users.pop()) if len(users) == 1 else ""


def _answer(search: "Search", outcome: "Outcome") -> Answer:
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()) if search.thread else ""
    trail = Trail(
        id=search.thread,
        question=search.options.question,
        strategy=outcome.strategy,
        window=search.options.window,
        status=outcome.status,
        answer=outcome.text,
        steps=outcome.steps,
        usage=outcome.usage,
        citations=outcome.citations,
        choices=tuple(search.options.choices),
        reasoner=search.reasoner.name,
        created=created,
        user=_user_of(search.options),
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
