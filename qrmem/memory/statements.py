"""Statements of a memory: list them with times and sources, judge them, edit them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

from qrmem.errors import (
    CapReached,
    ModelOutputError,
    NotFound,
    UsageError,
    WindowTooSmall,
    clean_name,
    require_text,
)
from qrmem.graph.merging import merge_documents
from qrmem.graph.superseding import (
    Ending,
    held_by,
    holds,
    is_ahead,
    judged_pairs,
    kept_endings,
    may_clash,
    pair_key,
    place_of,
    with_end,
    with_time,
)
from qrmem.graph.view_rows import readings, rows_of, statement_key
from qrmem.graphstore.protocol import Around, FactRow
from qrmem.graphstore.reads import entities_in, names_said
from qrmem.llm.parallel import in_batches
from qrmem.llm.run import Run
from qrmem.memory.entity_lookup import entity_key
from qrmem.memory.runtime import caps_of
from qrmem.memory.session import Session
from qrmem.text.dates import Validity, as_of_moment, checked, checked_validity, said_at, today
from qrmem.text.normalise import normalise
from qrmem.text.numbers import counted
from qrmem.text.sentences import sentences
from qrmem.text.words import terms
from qrmem.types import (
    Contribution,
    Event,
    Fact,
    FactView,
    JudgeReport,
    LedgerRow,
    Listener,
    Page,
    Segment,
    Statement,
)
from qrmem.types.options import CapOptions
from qrmem.types.turns import USER_KEY

if TYPE_CHECKING:
    from qrmem.answering.with_model import PromptedReasoner

_A_FACT = "`qrmem facts` lists them with their ids"


async def facts(
    session: Session,
    *,
    entity: str = "",
    user: str = "",
    as_of: str | date = "",
    superseded: bool = False,
    offset: int = 0,
    limit: int | None = None,
) -> Page[FactView]:
    """See `Memory.facts`."""
    at = as_of_moment(as_of)
    if entity != "":
        require_text(entity, "the name")
    await session.info()
    user = clean_name(user, "user")
    user_segments = await _segments_of(session, user) if user else None
    around = await _statements_of(session, entity, user_segments)
    facts_held = held_by(around.facts, at)
    single = await session.single_types()
    ends = await kept_endings(session.store, session.ns, facts_held, single, at)
    if user_segments is not None:  # texts of other users are not shown
        ends = {
            place: ending for place, ending in ends.items() if ending.by.segment_id in user_segments
        }
    names = await _names(session, around, ends.values())
    if user_segments is not None:  # an entity's name may come from them
        segment_ids = {
            f.segment_id for f in (*facts_held, *(ending.by for ending in ends.values()))
        }
        names = await names_said(session.store, session.ns, names, sorted(segment_ids))
    now = at or today()
    facts_shown = [f for f in facts_held if superseded or holds(f, ends.get(place_of(f)), now)]
    part = facts_shown[offset : None if limit is None else offset + limit]
    ids = dict.fromkeys(fact.segment_id for fact in part)
    segments = {s.id: s for s in await session.store.segments(session.ns, list(ids))}
    views = (
        _view(fact, ends.get(place_of(fact)), names, segments[fact.segment_id], now)
        for fact in part
        if fact.segment_id in segments
    )
    return Page(views, len(facts_shown))


async def ended_in(
    session: Session, segment_ids: Sequence[str], documents: Collection[str] | None, at: str
) -> dict[str, tuple[str, ...]]:
    """Return, in words, the statements of some segments that later statements replaced.

    Args:
        documents: ids of the only documents whose statements are used; `None`: all.
        at: date or moment of the view, in ISO form; "": now.
    """
    store, ns, single = session.store, session.ns, await session.single_types()
    judged = await judged_pairs(store, ns)
    if not judged and not single:  # nothing replaces anything
        return {}
    inside = await entities_in(store, ns, segment_ids)
    around = await store.around(
        ns, sorted({key for fact_ids in inside.values() for key in fact_ids})
    )
    facts_held = [fact for fact in held_by(around.facts, at) if fact.segment_id in inside]
    ends = await kept_endings(store, ns, facts_held, single, at, judged)
    later = await store.segments(ns, [ending.by.segment_id for ending in ends.values()])
    later_ids = {s.id for s in later if documents is None or s.document_id in documents}
    names = await _names(session, around, ends.values())
    if documents is not None:
        names = await names_said(store, ns, names, [*segment_ids, *sorted(later_ids)])
    now = at or today()
    ended_by: dict[str, dict[str, None]] = {}
    for fact in facts_held:
        ending = ends.get(place_of(fact))
        if ending and ending.by.segment_id in later_ids and not holds(fact, ending, now):
            fact_in_words = replace(fact, description=_fact_sentence(fact, names))
            words = with_time(fact_in_words, ending, _fact_sentence(ending.by, names))
            ended_by.setdefault(fact.segment_id, {})[words] = None
    return {id_: tuple(fact_ids) for id_, fact_ids in ended_by.items()}


def _fact_sentence(fact: Fact, names: Mapping[str, str]) -> str:
    ends = (names.get(end, end) for end in (fact.head, fact.tail))
    return f" {fact.description} ".join(ends)


async def edit(
    session: Session,
    fact_id: str,
    text: str | None,
    valid_from: str | None,
    valid_until: str | None,
) -> FactView:
    """See `Memory.edit_fact`."""
    session.require_writable()
    if text is None and valid_from is None and valid_until is None:
        raise UsageError("nothing to change: give a text, valid_from or valid_until")
    if text is not None:
        require_text(text, "the text")
        text = " ".join(normalise(text).split())
        require_text(text, "the text")
    statement = await _find_statement(session, fact_id)
    row = statement.now
    if row is None:
        raise NotFound(f"fact {fact_id!r} is deleted; restore it first")
    first = row.valid_from if valid_from is None else valid_from
    last = row.valid_until if valid_until is None else valid_until
    valid = checked_validity(first, last)
    description = row.description if text is None else text
    await _decide(session, statement, (statement.said(description, valid),))
    return await _one(session, fact_id)


async def end(session: Session, fact_id: str, on: str | date) -> FactView:
    """See `Memory.end_fact`."""
    day = on.isoformat()[:10] if isinstance(on, date) else checked(on, "the end")
    return await edit(session, fact_id, None, None, day or today())


async def delete(session: Session, fact_id: str) -> None:
    """See `Memory.delete_fact`."""
    await _decide(session, await _find_statement(session, fact_id), ())


async def restore(session: Session, fact_id: str) -> FactView:
    """See `Memory.restore_fact`."""
    statement = await _find_statement(session, fact_id)
    first = statement.first
    valid = Validity(first.valid_from, first.valid_until)
    await _decide(session, statement, (statement.said(first.description, valid),))
    return await _one(session, fact_id)


# --- stored statements ----------------------------------------------------------------------------


async def _statements_of(session: Session, entity: str, within: Collection[str] | None) -> Around:
    """Return the statements of an entity, of some segments, or all."""
    store, ns = session.store, session.ns
    if entity:
        try:
            keys = [await entity_key(store, ns, entity)]
        except NotFound:
            if within is None:
                raise
            keys = []  # its error would list names from other users' texts, too
    elif within is not None:
        keys_of = await entities_in(store, ns, sorted(within))
        keys = sorted({key for segment_keys in keys_of.values() for key in segment_keys})
    else:
        keys = sorted({row.entity for row in await store.names(ns)})
    around = await store.around(ns, keys)
    if within is None:
        return around
    return replace(around, facts=[f for f in around.facts if f.segment_id in within])


async def _segments_of(session: Session, user: str) -> set[str]:
    """Return the ids of the segments of a user's turns and documents."""
    ids = await session.store.document_ids(session.ns, where={USER_KEY: user})
    segments = await session.store.segments(session.ns, documents=ids) if ids else ()
    return {segment.id for segment in segments}


async def _names(session: Session, around: Around, ends: Iterable[Ending]) -> Mapping[str, str]:
    """Return the names of all entities in statements and in those that replace them."""
    missing = {end for e in ends for end in (e.by.head, e.by.tail)} - around.names.keys()
    entities = await session.store.entities(session.ns, sorted(missing)) if missing else ()
    return {**around.names, **{entity.key: entity.name for entity in entities}}


def _view(
    fact: Fact, ending: Ending | None, names: Mapping[str, str], segment: Segment, at: str
) -> FactView:
    head, tail = names.get(fact.head, fact.head), names.get(fact.tail, fact.tail)
    fact = with_end(fact, ending)
    by = ending.by if ending and not ending.is_over else None
    return FactView(
        id=fact.id,
        head=head,
        tail=tail,
        description=fact.description,
        document_id=segment.document_id,
        segment_id=segment.id,
        quotation=_quotation(segment.text, fact.description, (head, tail)),
        said_at=fact.said_at,
        valid_from=fact.valid_from,
        valid_until=fact.valid_until,
        superseded_by=by.id if by else "",
        superseded_at=ending.since if ending and by else "",
        type=fact.type,
        then=f"{names.get(by.head, by.head)} — {by.description} — {names.get(by.tail, by.tail)}"
        if by
        else "",
        is_ahead=is_ahead(fact, at),
    )


def _quotation(text: str, description: str, ends: Sequence[str]) -> str:
    """Return the sentence of a text with most of a statement; the shortest among equals."""
    statement_terms = set(terms(" ".join((description, *ends))))
    line, _ = max(
        _lines(text),
        key=lambda one: (len(statement_terms & one[1]), -len(one[0])),
        default=("", set()),
    )
    return line


@lru_cache(maxsize=8)  # statements of the same segment follow each other
def _lines(text: str) -> list[tuple[str, set[str]]]:
    """Return the sentences of a text, each with its terms."""
    lines = (" ".join(text[first:last].split()) for first, last in sentences(text))
    return [(line, set(terms(line))) for line in lines]


# --- decisions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _StoredStatement:
    """A statement as it was extracted, and its present form: `None` if it is deleted."""

    segment: Segment
    first: FactRow
    now: FactRow | None

    def said(self, description: str, valid: Validity) -> Statement:
        """Return the statement with other words or times."""
        first = self.first
        head, tail, _ = statement_key(first.head, first.tail, "")
        return Statement(
            head=head,
            tail=tail,
            description=description,
            question=first.question,
            valid_from=valid.first,
            valid_until=valid.last,
            type=first.type,
            properties=first.properties,
        )


async def _find_statement(session: Session, fact_id: str) -> _StoredStatement:
    """Return a statement by its id.

    Raises:
        NotFound: there is none.
    """
    session.require_writable()
    if not isinstance(fact_id, str):
        raise UsageError(f"the id of a fact must be text, not {type(fact_id).__name__}")
    await session.info()
    store, ns = session.store, session.ns
    segment_id, _, number = fact_id.rpartition(":")
    for segment in await store.segments(ns, [segment_id]):
        rows = await store.unmerged(ns, segment.document_id)
        for read in readings(rows.segments, rows.contributions, rows.said_at):
            if read.segment.id == segment_id:
                first = {str(row.n): row for row in rows_of(replace(read, edits=())).facts}
                now = {str(row.n): row for row in rows_of(read).facts}
                if number in first:
                    return _StoredStatement(segment, first[number], now.get(number))
    raise NotFound(f"no fact {fact_id!r} in {session.where}; {_A_FACT}")


async def _decide(session: Session, found: _StoredStatement, made: tuple[Statement, ...]) -> None:
    """Store the user's decision on a statement, and update the graph."""
    store, ns, segment = session.store, session.ns, found.segment
    row = found.first
    edited = Contribution(
        segment.id,
        "edit",
        statements=made,
        asked=statement_key(row.head, row.tail, row.description),
    )
    ledger = await store.ledger(ns, segment.document_id)
    state = next(one for one in ledger if one.segment_id == segment.id)
    ledger_row = LedgerRow(state.segment_id, state.state, state.reason, state.reasoner)
    await store.record(ns, [(ledger_row, edited)])
    await merge_documents(store, ns, [segment.document_id], similar=await session.similar())


async def _one(session: Session, fact_id: str) -> FactView:
    """Return an existing statement."""
    store, ns = session.store, session.ns
    segment_id, _, number = fact_id.rpartition(":")
    keys = (await entities_in(store, ns, [segment_id]))[segment_id]
    around = await store.around(ns, keys)
    fact = next(f for f in around.facts if place_of(f) == (segment_id, int(number)))
    ends = await kept_endings(store, ns, [fact], await session.single_types())
    (segment,) = await store.segments(ns, [segment_id])
    names = await _names(session, around, ends.values())
    return _view(fact, ends.get(place_of(fact)), names, segment, today())


# A chat model judges statements that may clash: which later one replaces an earlier one?
#
# A judgement is stored under its pair, and deleted with the segment of either statement.

TOGETHER = 8
"""Maximum number of pairs in a call."""
PER_DOCUMENT = 0.8
"""Maximum number of pairs for each turn or dated document, so that it costs 0.1 calls at most."""
_LONGEST = 300
"""Maximum number of characters of a statement in a prompt."""
Pair = tuple[Fact, Fact]


async def judge(
    session: Session, listener: Listener, caps: CapOptions, *, is_plan: bool
) -> JudgeReport:
    """See `Memory.judge_facts`."""
    # Loads pydantic, which a search does not need.
    from qrmem.answering.with_model import PromptedReasoner

    await session.settle()
    await session.info()
    models = await session.models()
    run = models.run("construction", listener, caps=caps_of(session.settings, **caps))
    if not isinstance(run.reasoner, PromptedReasoner) or run.caller is None:
        raise UsageError(
            "judging statements needs a chat model: name one with --model or QRMEM_MODEL"
        )
    waiting = await _waiting(session)
    report = JudgeReport(left=waiting.left)
    if is_plan:
        prompt = models.counter.count(run.caller.prompts["judge-facts"].system)
        calls = -(-len(waiting.pairs) // TOGETHER)
        tokens = sum(
            models.counter.count(_pair_in_words(p, waiting.names)) + _MARKS for p in waiting.pairs
        )
        tokens += calls * prompt
        return replace(report, pairs=len(waiting.pairs), calls=calls, tokens_in=tokens)
    session.require_writable()
    judging = _Judging(session, run, run.reasoner, waiting.names, listener)
    for batch in in_batches(waiting.pairs, TOGETHER):
        try:
            report = await judging.of(batch, report)
        except CapReached as exc:
            report = replace(report, stopped=str(exc))
            break
    usage = run.usage
    return replace(report, calls=usage.calls, tokens_in=usage.tokens_in, usage=usage)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Pairs to judge, the names of their ends, and how many pairs are left for later."""

    pairs: Sequence[Pair]
    names: Mapping[str, str]
    left: int


async def _waiting(session: Session) -> _Waiting:
    store, ns = session.store, session.ns
    infos = {i.id: i for i in await store.documents(ns) if said_at(i.metadata)}
    segments = await store.segments(ns, documents=sorted(infos))
    user_of = {s.id: infos[s.document_id].metadata.get(USER_KEY) for s in segments}
    around = await _stated_by_users(session, sorted(user_of))
    pairs: dict[str, Pair] = {}
    for old, new in may_clash(fact for fact in around.facts if fact.segment_id in user_of):
        # One sentence may give statements about several pairs of names: one represents all.
        if user_of[old.segment_id] == user_of[new.segment_id]:
            pairs.setdefault(pair_key(old, new), (old, new))
    judged = await judged_pairs(store, ns)
    pairs_waiting = [pair for key, pair in pairs.items() if key not in judged]
    most = max(0, max(TOGETHER, int(PER_DOCUMENT * len(infos))) - len(judged))
    return _Waiting(pairs_waiting[:most], around.names, len(pairs_waiting[most:]))


async def _stated_by_users(session: Session, segment_ids: Sequence[str]) -> Around:
    mentions = await session.store.mentions(session.ns, segment_ids)
    keys = {key for pair_keys in mentions.named.values() for _, key in pair_keys}
    return await session.store.around(session.ns, sorted(keys))


@dataclass(frozen=True, slots=True)
class _Judging:
    """One run that judges pairs and stores the judgements."""

    session: Session
    run: Run
    reasoner: "PromptedReasoner"
    names: Mapping[str, str]
    listener: Listener

    async def of(self, batch: Sequence[Pair], report: JudgeReport) -> JudgeReport:
        """Judge some pairs with one call; retry and then report pairs without a judgement."""
        store, ns = self.session.store, self.session.ns
        segments = sorted({fact.segment_id for pair in batch for fact in pair})
        from qrmem.extraction.fact_extraction import VERDICTS

        why, verdict_of = (
            f"the reply has none of {', '.join(VERDICTS)}",
            dict[int, str](),
        )
        try:
            verdict_of = await self.reasoner.verdicts(
                [_pair_in_words(p, self.names) for p in batch], segments
            )
        except (ModelOutputError, WindowTooSmall) as exc:
            why = str(exc)
        finally:
            await store.record(ns, (), self.run.take_all())
        for n, verdict in verdict_of.items():
            ids, value = sorted({fact.segment_id for fact in batch[n]}), {"verdict": verdict}
            await store.put_cache_entry(ns, "judgement", pair_key(*batch[n]), value, segments=ids)
        problems = report.problems
        if missing := len(batch) - len(verdict_of):
            problem = f"{counted(missing, 'pairs')} not judged: {why}"
            self.listener(Event("warning", {"what": "judgement", "message": problem}))
            problems = (*problems, problem)
        verdicts = list(verdict_of.values())
        return replace(
            report,
            pairs=report.pairs + len(verdict_of),
            replaced=report.replaced + verdicts.count("replaces"),
            agreed=report.agreed + verdicts.count("agrees"),
            beside=report.beside + verdicts.count("beside"),
            problems=problems,
        )


_MARKS = 12
"""Tokens of the labels around a pair."""


def _pair_in_words(pair: Pair, names: Mapping[str, str]) -> str:
    """Return an earlier and a later statement in the form of the prompt."""
    lines = []
    for word, fact in zip(("earlier", "later"), pair, strict=True):
        head, tail = names.get(fact.head, fact.head), names.get(fact.tail, fact.tail)
        sentence = " ".join(f"{head} - {fact.description} - {tail}".split())
        lines.append(f"{word} ({fact.said_at[:10]}): {sentence[:_LONGEST]}")
    return "\n".join(lines)
