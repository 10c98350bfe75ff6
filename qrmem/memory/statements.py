"""Statements of a memory: list them with times and sources, edit them."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache

from qrmem.errors import NotFound, UsageError, clean_name, require_text
from qrmem.graph.by_hand import all_edits, ended_by_hand
from qrmem.graph.merging import edit_statements
from qrmem.graph.superseding import (
    Ending,
    Place,
    held_by,
    holds,
    is_ahead,
    judged_pairs,
    kept_endings,
    place_of,
    with_end,
    with_time,
)
from qrmem.graph.view_rows import Read, asked_of, deletion_of, readings, rows_of, said_by
from qrmem.graphstore.protocol import Around, FactRow, GraphStore, NameFilter
from qrmem.graphstore.reads import entities_in, names_said
from qrmem.memory.entity_lookup import entity_key
from qrmem.memory.session import Session
from qrmem.text.dates import Validity, as_of_moment, checked, checked_validity, today
from qrmem.text.names import normalise_name
from qrmem.text.normalise import normalise
from qrmem.text.sentences import sentences
from qrmem.text.words import terms
from qrmem.types import Contribution, Fact, FactView, Page, Segment, Statement
from qrmem.types.turns import USER_KEY

_A_FACT = "`qrmem facts` lists them with their ids"


async def facts(
    session: Session,
    *,
    entity: str = "",
    user: str = "",
    as_of: str | date = "",
    superseded: bool = False,
    deleted: bool = False,
    offset: int = 0,
    limit: int | None = None,
) -> Page[FactView]:
    """Return a page of statements."""
    at = as_of_moment(as_of)
    if superseded and deleted:
        raise UsageError("list either superseded or deleted statements, not both")
    if entity != "":
        require_text(entity, "the name")
    await session.info()
    user = clean_name(user, "user")
    user_segments = await _segments_of(session, user) if user else None
    around = await _statements_of(session, entity, user_segments, deleted=deleted)
    facts_held = held_by(around.facts, at)
    single = await session.single_types()
    ends: Mapping[Place, Ending] = {}
    if not deleted:
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
    is_any = superseded or deleted
    facts_shown = [f for f in facts_held if is_any or holds(f, ends.get(place_of(f)), now)]
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
    """Return, in words, the statements of some segments that do not hold any more.

    Later statements replaced them, or the user ended or deleted them by hand.

    Args:
        documents: ids of the only documents whose statements are used; `None`: all.
        at: date or moment of the view, in ISO form; "": now.
    """
    store, ns, single = session.store, session.ns, await session.single_types()
    judged = await judged_pairs(store, ns)
    now = at or today()
    by_hand = await ended_by_hand(store, ns, segment_ids, now)
    if not judged and not single:  # nothing replaces anything
        return by_hand
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
    ended_by = {id_: dict.fromkeys(words) for id_, words in by_hand.items()}
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
    """Replace what a statement says by what the user writes."""
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
    await _store_edit(session, statement, statement.said(description, valid))
    return await _one(session, fact_id)


async def end(session: Session, fact_id: str, on: str | date) -> FactView:
    """Say by hand since when a statement is no longer true."""
    day = on.isoformat()[:10] if isinstance(on, date) else checked(on, "the end")
    return await edit(session, fact_id, None, None, day or today())


async def delete(session: Session, fact_id: str) -> None:
    """Delete a statement by hand; a new reading does not bring it back."""
    found = await _find_statement(session, fact_id)
    document_ids = await _documents_about(session, asked_of(found.first)[:2])
    await _store_alike(session, found, document_ids, lambda one: deletion_of(one.first))


async def restore(session: Session, fact_id: str) -> FactView:
    """Undo what was done to a statement by hand."""
    found = await _find_statement(session, fact_id)
    if found.now is None:
        await _store_alike(
            session,
            found,
            await _documents_with_deletions(session),
            lambda one: one.as_first() if one.now is None else None,
        )
    else:
        await _store_edit(session, found, found.as_first())
    return await _one(session, fact_id)


async def _documents_with_deletions(session: Session) -> set[str]:
    edits = await all_edits(session.store, session.ns)
    ids = {made.segment_id for made in edits if not made.statements}
    return {s.document_id for s in await session.store.segments(session.ns, sorted(ids))}


# --- stored statements ----------------------------------------------------------------------------


async def _statements_of(
    session: Session, entity: str, within: Collection[str] | None, *, deleted: bool
) -> Around:
    """Return the statements of an entity, of some segments, or all; or those that are deleted."""
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
    if deleted:
        around = replace(around, facts=await _deleted(session, keys))
    if within is None:
        return around
    return replace(around, facts=[f for f in around.facts if f.segment_id in within])


async def _deleted(session: Session, keys: Collection[str]) -> list[Fact]:
    """Return the deleted statements of some entities."""
    store, ns = session.store, session.ns
    found = await store.unmerged(ns, *sorted(await _documents_with_deletions(session)))
    reads = readings(found.segments, found.contributions, found.said_at)
    rows = [one.first for one in _statements(reads) if one.now is None]
    norms = {end for row in rows for end in asked_of(row)[:2]}
    entity_of = {r.key: r.entity for r in await store.names(ns, NameFilter(norms=norms))}
    facts = (
        Fact(
            head=entity_of.get(row.head, row.head),
            tail=entity_of.get(row.tail, row.tail),
            description=row.description,
            segment_id=row.segment_id,
            question=row.question,
            said_at=row.said_at,
            valid_from=row.valid_from,
            valid_until=row.valid_until,
            n=row.n,
            type=row.type,
            properties=row.properties,
        )
        for row in rows
    )
    return [fact for fact in facts if fact.head in keys or fact.tail in keys]


async def _segments_of(session: Session, user: str) -> set[str]:
    """Return the ids of the segments of a user's turns and documents."""
    ids = await session.store.document_ids(session.ns, where={USER_KEY: user})
    segments = await session.store.segments(session.ns, documents=ids) if ids else ()
    return {segment.id for segment in segments}


async def _names(session: Session, around: Around, ends: Iterable[Ending]) -> Mapping[str, str]:
    """Return the names of all entities in statements and in those that replace them."""
    facts = (*around.facts, *(ending.by for ending in ends))
    missing = {end for fact in facts for end in (fact.head, fact.tail)} - around.names.keys()
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

    def said(self, description: str, valid: Validity) -> Contribution:
        """Return the edit that gives the statement other words or times."""
        first = self.first
        asked = asked_of(first)
        statement = Statement(
            head=asked[0],
            tail=asked[1],
            description=description,
            question=first.question,
            valid_from=valid.first,
            valid_until=valid.last,
            type=first.type,
            properties=first.properties,
        )
        return Contribution(self.segment.id, "edit", statements=(statement,), asked=asked)

    def as_first(self) -> Contribution:
        """Return the edit that restores the statement as it was extracted."""
        return self.said(
            self.first.description, Validity(self.first.valid_from, self.first.valid_until)
        )

    def forms(self) -> set[tuple[str, ...]]:
        """Return the normal forms of its words, first and present ones, and of its type."""
        rows = (self.first, self.now or self.first)
        ends = asked_of(self.first)[:2]
        return {said for row in rows for said in said_by(*ends, row.description, row.type)}


def _statements(reads: Iterable[Read]) -> Iterator[_StoredStatement]:
    for read in reads:
        now = {row.n: row for row in rows_of(read).facts}
        for row in rows_of(replace(read, edits=())).facts:
            yield _StoredStatement(read.segment, row, now.get(row.n))


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
        reads = readings(rows.segments, rows.contributions, rows.said_at)
        for found in _statements(read for read in reads if read.segment.id == segment_id):
            if str(found.first.n) == number:
                return found
    raise NotFound(f"no fact {fact_id!r} in {session.where}; {_A_FACT}")


async def _store_edit(session: Session, found: _StoredStatement, made: Contribution) -> None:
    """Store the user's edit of one statement."""
    store, ns = session.store, session.ns
    await edit_statements(store, ns, [found.segment.document_id], lambda *_: [made])
    await store.clean()


async def _store_alike(
    session: Session,
    found: _StoredStatement,
    document_ids: Iterable[str],
    edit_of: Callable[[_StoredStatement], Contribution | None],
) -> None:
    """Store edits of all equal statements that the user of a statement's document may change.

    Args:
        found: the statement.
        document_ids: the documents that may say the same.
        edit_of: returns the edit of an equal statement, `None` for no edit.
    """
    own, forms = found.segment.document_id, found.forms()

    def edits_of(reads: Sequence[Read], users: Mapping[str, str]) -> Iterator[Contribution]:
        user = users.get(own, "")
        theirs = (read for read in reads if user in ("", users.get(read.segment.document_id, "")))
        for one in _statements(theirs):
            if not forms.isdisjoint(one.forms()) and (edit := edit_of(one)):
                yield edit

    ids = sorted({own, *document_ids})
    await edit_statements(session.store, session.ns, ids, edits_of)
    await session.store.clean()  # the words of the form before stay in no log


async def _documents_about(session: Session, ends: Iterable[str]) -> list[str]:
    """Return the documents with statements between two names, given in normal form."""
    store, ns = session.store, session.ns
    rows = await store.names(ns, NameFilter(norms=set(ends)))
    keys = {row.entity for row in rows}
    around = await store.around(ns, sorted(keys))
    ids = {fact.segment_id for fact in around.facts if {fact.head, fact.tail} <= keys}
    return [segment.document_id for segment in await store.segments(ns, sorted(ids))]


async def edits_to_keep(
    store: GraphStore, ns: str, segments: Iterable[Segment]
) -> list[Contribution]:
    """Return the user's edits that new segments of stored documents take over from the old ones.

    A segment takes over an edit if it is the same, or still has the words of the statement.

    Args:
        store: the store.
        ns: the namespace.
        segments: the segments that documents get.
    """
    edits = await all_edits(store, ns)
    old = {s.id: s for s in await store.segments(ns, sorted({one.segment_id for one in edits}))}
    edits_of: dict[str, list[Contribution]] = {}
    for made in edits:
        if made.segment_id in old:
            edits_of.setdefault(old[made.segment_id].document_id, []).append(made)
    return [
        replace(made, segment_id=segment.id)
        for segment in segments
        for made in edits_of.get(segment.document_id, ())
        if made.segment_id == segment.id or _says(segment.text, made, old[made.segment_id].text)
    ]


def _says(text: str, made: Contribution, before: str) -> bool:
    """Return whether a text has the words of an edited statement, or its sentence."""
    *ends, description = made.asked
    words = normalise_name(" ".join(made.asked)).split()
    sentence = _quotation(before, description, ends)
    return sentence in " ".join(text.split()) or {*words} <= {*normalise_name(text).split()}


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
