"""Makes the rows of the view from contributions, and the update that adds them.

Rows depend only on a segment's own contributions, its document's accepted questions, and what its
document mostly calls its entities, so they are made segment by segment. `qrmem.graph.resolution`
assigns entities to names when the rows exist.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import groupby
from operator import attrgetter

from qrmem.graph.name_parents import NameUse
from qrmem.graph.questions import accept_in_order
from qrmem.graph.said_names import mention_key, said_names
from qrmem.graphstore.protocol import (
    EntityRow,
    FactRow,
    MentionRow,
    UserEdit,
    ViewUpdate,
)
from qrmem.text.dates import Validity, has_bounds, is_backwards, is_date, stated_validity
from qrmem.text.names import Occurrences, best_form, is_alias, name_key, normalise_name, split_key
from qrmem.text.sentences import sentences
from qrmem.text.words import terms
from qrmem.types import (
    Contribution,
    Mention,
    Question,
    Scalar,
    Segment,
    Statement,
)
from qrmem.types.knowledge_graph import SPEAKER

VERSION = 7
"""Version of the rows; a new number makes all rows again."""

_OWN = "type", "properties"
_MENTION = attrgetter(*(one.name for one in fields(Mention) if one.name != "properties"))
_STATEMENT = attrgetter(*(one.name for one in fields(Statement) if one.name not in _OWN))
_LISTED = "mentions", "statements", "left_out", "type", "dropped"
_REST = attrgetter(*(one.name for one in fields(Contribution) if one.name not in _LISTED))


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of the view for one or more segments."""

    mentions: list[MentionRow] = field(default_factory=list)
    facts: list[FactRow] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    index: dict[str, Mapping[str, int]] = field(default_factory=dict)
    merged: dict[str, str] = field(default_factory=dict)
    edits: list[Contribution] = field(default_factory=list)

    def add(self, other: "Rows") -> None:
        """Add the rows of other segments."""
        self.mentions.extend(other.mentions)
        self.facts.extend(other.facts)
        self.questions.extend(other.questions)
        self.index.update(other.index)
        self.merged.update(other.merged)
        self.edits.extend(other.edits)


@dataclass(frozen=True, slots=True)
class Read:
    """A segment with its valid contributions.

    Attributes:
        contributions: those of the first pass, then of the pass with the accepted questions.
        accepted: its accepted questions.
        edits: the user's edits of its statements.
        said_at: date of its document; "" if undated.
        names: name key to the key of the name by which its document mostly calls the entity; see
            `qrmem.graph.said_names`.
    """

    segment: Segment
    contributions: tuple[Contribution, ...] = ()
    accepted: tuple[str, ...] = ()
    edits: tuple[Contribution, ...] = ()
    said_at: str = ""
    names: Mapping[str, Mention] = field(default_factory=dict)

    def with_edits(self, edits: Iterable[Contribution]) -> "Read":
        """Return the segment with further edits, or with others of the same statements."""
        by_asked = {edit.asked: edit for edit in (*self.edits, *edits)}
        return replace(self, edits=tuple(by_asked[asked] for asked in sorted(by_asked)))

    @property
    def digest(self) -> str:
        """The digest for `ViewUpdate.merged`, which shows whether rows are current."""
        read = [_values(serialised) for serialised in (*self.contributions, *self.edits)]
        names = [(key, name.name, name.type) for key, name in sorted(self.names.items())]
        serialised = repr((VERSION, read, self.accepted, self.said_at, names))
        return hashlib.blake2b(
            serialised.encode("utf-8", "surrogatepass"), digest_size=12
        ).hexdigest()


def _values(made: Contribution) -> Sequence[object]:
    """Return all values of a contribution, much faster than `repr`."""
    values = [_REST(made), [*map(_MENTION, made.mentions)], [*map(_STATEMENT, made.statements)]]
    # Added only if there are any, so that the digests of other segments do not change.
    typed = [
        *((m.name, m.properties) for m in made.mentions if m.properties),
        *((s.type, s.properties, s) for s in made.statements if s.type),
    ]
    return [*values, typed] if typed else values


def decided(extractions: Sequence[Contribution]) -> Sequence[tuple[str, ...]]:
    """Accept questions like a build: the pool starts with the user's question, if there is one."""
    seeds = dict.fromkeys(question for extraction in extractions for question in extraction.asked)
    return accept_in_order(extractions, tuple(seeds))


def readings(
    segments: Sequence[Segment],
    contributions: Iterable[Contribution],
    said_at: Mapping[str, str] | None = None,
) -> list[Read]:
    """Return the valid contributions of some documents, segment by segment.

    Of passes with accepted questions only the one with exactly the currently accepted questions
    is valid, so an earlier state of the document has no effect.

    Args:
        segments: segments, grouped by document, in order.
        contributions: their contributions.
        said_at: document id to its date.
    """
    moments = said_at or {}
    edits: dict[str, list[Contribution]] = defaultdict(list)
    extractions: dict[str, Contribution] = {}
    supplements: dict[str, list[Contribution]] = defaultdict(list)
    for contribution in contributions:
        if contribution.kind == "extraction":
            extractions[contribution.segment_id] = contribution
        elif contribution.kind == "supplement":
            supplements[contribution.segment_id].append(contribution)
        elif contribution.kind == "edit":
            edits[contribution.segment_id].append(contribution)
    accepted: dict[str, tuple[str, ...]] = {}
    names: dict[str, Mapping[str, Mention]] = {}
    for document_id, group in groupby(segments, key=attrgetter("document_id")):
        ids = [s.id for s in group]
        firsts = [extractions[id] for id in ids if id in extractions]
        accepted |= zip((f.segment_id for f in firsts), decided(firsts), strict=True)
        seconds = (s for id in ids for s in supplements[id] if s.asked == accepted.get(id, ()))
        names[document_id] = said_names(one for one in (*firsts, *seconds) if one.by_model)
    result = []
    for segment in segments:
        questions = accepted.get(segment.id, ())
        counting = [extractions[segment.id]] if segment.id in extractions else []
        counting += [
            contribution
            for contribution in supplements[segment.id]
            if contribution.asked == questions
        ]
        of_document = names[segment.document_id]
        keys = {mention_key(m) for one in counting if one.by_model for m in one.mentions}
        result.append(
            Read(
                segment,
                tuple(counting),
                tuple(questions),
                tuple(edits[segment.id]),
                moments.get(segment.document_id, ""),
                {key: of_document[key] for key in keys & of_document.keys()},
            )
        )
    return result


def rows_of(read: Read) -> Rows:
    """Return the rows of one segment.

    Entities that do not occur in the segment are dropped with their facts. An end of a fact that
    occurs but is not an entity becomes a mention without a type. Results of questions that
    were not accepted are left out. Terms are those of the segment's text; the search adds titles.

    What a chat model said was checked against all that its prompt showed, and is taken as it is.
    """
    segment = read.segment
    names = _Names(segment.text)
    counting = {"", *read.accepted}
    for contribution in read.contributions:
        for mention in contribution.mentions:
            if mention.question in counting and contribution.by_model:
                names.add_said(mention, read.names.get(mention_key(mention), mention))
            elif mention.question in counting:
                names.add(mention)
    statements = [
        s
        for contribution in read.contributions
        for s in contribution.statements
        if s.question in counting
    ]
    said = {id(s) for one in read.contributions if one.by_model for s in one.statements}
    facts: dict[tuple[str, str, str], Statement] = {}
    for statement in statements:
        ends = names.key_of(statement.head, statement), names.key_of(statement.tail, statement)
        description = " ".join(statement.description.split())
        if ends[0] and ends[1] and ends[0] != ends[1] and description:
            first_statement = facts.setdefault((ends[0], ends[1], description), statement)
            if statement.type and not first_statement.type:
                facts[ends[0], ends[1], description] = statement
    return Rows(
        mentions=names.rows(segment.id),
        facts=_fact_rows(read, facts, said),
        questions=[Question(question, segment.id) for question in read.accepted],
        index={segment.id: Counter(terms(segment.text))},
        merged={segment.id: read.digest},
    )


class Deletions:
    """The statements that users deleted by hand; they hold for equal statements of other segments.

    Statements are equal if their ends are, and their words in one normal form, or their types. A
    deletion in a user's document holds for this user's documents, any other for all.
    """

    def __init__(self, edits: Iterable[UserEdit]) -> None:
        self._said = {
            (edit.user, said)
            for edit in edits
            if not edit.made.statements and len(edit.made.asked) == 3
            for said in said_by(*edit.made.asked, edit.made.type)
        }

    def again_in(self, read: Read, user: str) -> list[Contribution]:
        """Return the deletions of the statements that a segment says again, but for edited ones."""
        if not self._said:
            return []
        edited = {edit.asked for edit in read.edits}
        return [
            deletion_of(row)
            for row in rows_of(replace(read, edits=())).facts
            if asked_of(row) not in edited
            for said in [said_by(*asked_of(row), row.type)]
            if any((of, one) in self._said for of in {"", user} for one in said)
        ]


def said_by(head: str, tail: str, description: str, type: str) -> set[tuple[str, ...]]:
    """Return the normal forms of a statement by its words and by its type, if it has one."""
    words = normalise_name(description) or description
    return {(head, tail, "", words), *([(head, tail, type)] if type else [])}


def asked_of(row: FactRow) -> tuple[str, str, str]:
    """Return the key by which an edit identifies a statement that nobody edited."""
    return statement_key(row.head, row.tail, row.description)


def deletion_of(row: FactRow) -> Contribution:
    """Return the edit that deletes a statement, given as it was extracted."""
    return Contribution(row.segment_id, "edit", asked=asked_of(row), type=row.type)


def statement_key(head: str, tail: str, description: str) -> tuple[str, str, str]:
    """Return the key by which an edit identifies a statement, from its ends as name keys."""
    return split_key(head)[0], split_key(tail)[0], description


def _fact_rows(
    read: Read, facts: Mapping[tuple[str, str, str], Statement], said: Collection[int]
) -> list[FactRow]:
    """Return the rows of statements with the user's edits; a statement never changes its number.

    Args:
        said: ids of the statement objects of a chat model, which no time words date.
    """
    times = _Times(read.segment.text, read.said_at)
    edited = {edit.asked: edit.statements for edit in read.edits}
    rows = []
    for n, ((head, tail, description), statement) in enumerate(facts.items()):
        key = statement_key(head, tail, description)
        if key in edited:
            if not edited[key]:  # the user deleted it
                continue
            statement = edited[key][-1]
            description, valid = statement.description, _given_validity(statement)
        elif id(statement) in said:
            valid = _given_validity(statement)
        else:
            valid = times.of(statement)
        rows.append(
            FactRow(
                segment_id=read.segment.id,
                n=n,
                head=head,
                tail=tail,
                description=description,
                question=statement.question,
                said_at=read.said_at,
                valid_from=valid.first,
                valid_until=valid.last,
                type=statement.type,
                properties=statement.properties,
            )
        )
    return rows


def _given_validity(statement: Statement) -> Validity:
    """Return a statement's validity by its own dates, without an end before its beginning."""
    dates = statement.valid_from, statement.valid_until
    validity = Validity(*(when if is_date(when) else "" for when in dates))
    return validity._replace(last="") if is_backwards(validity) else validity


class _Times:
    """The validity of a segment's statements: by their own dates, else by time words."""

    def __init__(self, text: str, said_at: str) -> None:
        self._text = text
        self._said_at = said_at

    def of(self, statement: Statement) -> Validity:
        """Return the validity of a statement."""
        validity = _given_validity(statement)
        if any(validity) or not self._bounded:
            return validity
        ends = statement.head, statement.tail
        sentence = self._sentence(statement.description, ends)
        return stated_validity(sentence, ends, self._said_at) if sentence else Validity()

    def _sentence(self, description: str, ends: Sequence[str]) -> str:
        """Return the sentence with most words of a statement, if it names both ends; else "".

        If no sentence has a word of the description, only one may name both ends.
        """
        both = {line for line in self._lines if all(end in line for end in ends)}
        if both.isdisjoint(self._bounded):  # the usual case: the sentence states no validity
            return ""
        words = set(terms(description)).difference(*map(terms, ends))
        score, is_own, _, sentence = max(
            (len(words & own), line in both, -len(line), line)
            for line, own in zip(self._lines, self._terms, strict=True)
        )
        return sentence if is_own and (score or len(both) == 1) else ""

    @cached_property
    def _lines(self) -> list[str]:
        return [" ".join(self._text[a:b].split()) for a, b in sentences(self._text)]

    @cached_property
    def _bounded(self) -> list[str]:
        """The lines that may state a validity."""
        return [*filter(has_bounds, self._lines)] if has_bounds(self._text) else []

    @cached_property
    def _terms(self) -> list[set[str]]:
        return [set(terms(line)) for line in self._lines]


class _Names:
    """Collects the names of one segment with their forms."""

    def __init__(self, text: str) -> None:
        self._in_text = Occurrences(text)
        self._forms: dict[str, dict[str, None]] = {}
        self._said: set[str] = set()
        self._keys: defaultdict[str, set[str]] = defaultdict(set)
        self._question: dict[str, str] = {}
        self._properties: defaultdict[str, dict[str, Scalar]] = defaultdict(dict)
        self._by_form: dict[str, str] = {}

    def add(self, mention: Mention) -> None:
        """Add a mention with the forms that occur; without any it is dropped.

        A form that the rules accept as an alias becomes a name of its own. The resolution then
        merges both over the whole namespace, where a user can see and undo it.
        """
        forms = dict.fromkeys((mention.name, *mention.forms))
        spellings = {form: self._in_text.spelled(form) for form in forms}
        if mention.forms == SPEAKER:
            spellings = {mention.name: spellings[mention.name] or mention.name}
        spelled = [
            s for s in dict.fromkeys(spellings.values()) if s is not None and normalise_name(s)
        ]
        if not spelled:
            return
        is_named = spellings[mention.name] == spelled[0]
        name = spelled[0] if is_named else max(spelled, key=lambda form: (len(form), form))
        for form in [form for form in spelled if _is_decided_elsewhere(form, name)]:
            spelled.remove(form)
            self.add(replace(mention, name=form, forms=(form,)))
        key = self._key_of(normalise_name(name), " ".join(mention.type.split()).upper())
        self._forms.setdefault(key, {}).update(dict.fromkeys(spelled))
        self._keys[split_key(key)[0]].add(key)
        before = self._question.get(key, mention.question)
        self._question[key] = before and mention.question and before
        self._properties[key].update(mention.properties)
        self._by_form[normalise_name(name)] = key
        for form in spelled:
            self._by_form.setdefault(normalise_name(form), key)

    def add_said(self, mention: Mention, called: Mention) -> None:
        """Add a mention of a chat model, with all forms that it gives.

        Args:
            called: name and type by which the document mostly calls the entity.
        """
        spelled = [s for form in mention.forms if (s := self._in_text.spelled(form)) is not None]
        key = self._key_of(normalise_name(called.name), called.type)
        self._said.add(key)
        self._forms.setdefault(key, {}).update(dict.fromkeys(spelled or [called.name]))
        self._keys[split_key(key)[0]].add(key)
        before = self._question.get(key, mention.question)
        self._question[key] = before and mention.question and before
        self._properties[key].update(mention.properties)
        for form in (mention.name, called.name, *mention.forms):
            self._by_form.setdefault(normalise_name(form), key)

    def key_of(self, name: str, statement: Statement) -> str:
        """Return the key of a fact's end; "" if the segment does not contain it."""
        norm = normalise_name(name)
        if norm not in self._by_form:
            self.add(Mention(name, question=statement.question))
        return self._by_form.get(norm) or self._by_form.get(self._norm_here(name), "")

    def rows(self, segment_id: str) -> list[MentionRow]:
        """Return the rows, by name."""
        counts = self._in_text.counted(form for forms in self._forms.values() for form in forms)
        return [
            MentionRow(
                segment_id,
                key,
                tuple(sorted((form, counts[form]) for form in self._forms[key])),
                self._question[key],
                tuple(sorted(self._properties[key].items())),
                key in self._said,
            )
            for key in sorted(self._forms)
        ]

    def _key_of(self, norm: str, type: str) -> str:
        """Return the key for a name; a segment's untyped name equals its typed name."""
        key = name_key(norm, type)
        alike = [k for k in self._keys[norm] if k != key]
        if type and alike == [f"{norm}|"]:
            self._rename(alike[0], key)
        elif not type and len(alike) == 1:
            return alike[0]
        return key

    def _rename(self, old: str, new: str) -> None:
        self._forms[new] = self._forms.pop(old)
        self._said = {new if key == old else key for key in self._said}
        self._question[new] = self._question.pop(old)
        self._properties[new] = self._properties.pop(old, {})
        self._keys[split_key(old)[0]].remove(old)
        for form, key in self._by_form.items():
            if key == old:
                self._by_form[form] = new

    def _norm_here(self, name: str) -> str:
        return normalise_name(self._in_text.spelled(name) or "")


def _is_decided_elsewhere(form: str, name: str) -> bool:
    if form == name:
        return False
    return normalise_name(form) != normalise_name(name) and is_alias(form, name)


def forms_of(mentions: Iterable[MentionRow]) -> dict[str, dict[str, int]]:
    """Return the surface forms of the names of some mentions with their counts, by name key."""
    forms: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in mentions:
        for form, count in row.forms:
            forms[row.name][form] += count
    return forms


def uses_of(mentions: Iterable[MentionRow]) -> list[NameUse]:
    """Return the names of some mentions with their counts."""
    return [
        NameUse(key, best_form(key, forms.items()), sum(forms.values()))
        for key, forms in forms_of(mentions).items()
    ]


def change_of(
    rows: Rows,
    clear: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    entities: Sequence[EntityRow] = (),
) -> ViewUpdate:
    """Return the update that adds rows to the view.

    Args:
        rows: the rows.
        clear: segments whose rows are replaced.
        names: new name key to entity key.
        entities: new entities.
    """
    return ViewUpdate(
        clear=list(clear),
        mentions=rows.mentions,
        facts=rows.facts,
        questions=rows.questions,
        index=rows.index,
        merged=rows.merged,
        edits=rows.edits,
        names=names or {},
        entities=entities,
    )
