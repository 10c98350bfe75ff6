"""What is read out of a segment, and how far each one is: the facts that a store keeps."""

from dataclasses import dataclass

from qrmem.types.kinds import ContributionKind, Properties, SegmentState

SPEAKER = ("I",)
"""The forms of a mention of the one who speaks."""


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity as one segment names it.

    Attributes:
        name: the fullest form in the segment.
        type: `PERSON`, `PLACE`, `ORGANISATION`, `DATE`, `NUMBER`, `WORK`, …, a type of the schema
            (`ShipYard` is `SHIP_YARD`), or "" if unknown.
        forms: all surface forms in the segment, each found in it up to white space; holds `name`.
            `SPEAKER`: the one who says the segment, named there or not.
        count: how often any of the forms occurs, at least 1.
        question: text of the generated question that added it, "" for the first extraction.
        properties: what the segment says of it, by the properties of its type.
    """

    name: str
    type: str = ""
    forms: tuple[str, ...] = ()
    count: int = 1
    question: str = ""
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """An open relation as one segment states it: two names and a description in plain words.

    The direction is that of the description; the folded relation has none.

    Attributes:
        valid_from: when it began to hold, `2026-05-03`, `2026-05` or `2026`; "" where the text does
            not say.
        valid_until: when it ceased to hold, in the same form.
        type: a relation type of the schema (`WorksFor` is `WORKS_FOR`), or "".
        properties: what the segment says beside, by the properties of its type.
    """

    head: str
    tail: str
    description: str
    question: str = ""
    valid_from: str = ""
    valid_until: str = ""
    type: str = ""
    properties: Properties = ()


@dataclass(frozen=True, slots=True)
class Loss:
    """A reply of a model of which a part could not be used.

    Attributes:
        reason: what had to be left out.
        raw: the reply.
        attempt: number of the last try that was made for it.
    """

    reason: str
    raw: str
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one pass over one segment added: the only facts that a store keeps of it.

    Attributes:
        kind: `extraction` (first pass), `supplement` (asked with accepted questions),
            `oriented` (asked with the user's question), or `edit` (what the user makes of one
            statement: its new form, or no statement where it is deleted).
        asked: the questions that the pass was asked with, in order; `()` for an extraction. Of an
            edit: head and tail, normalised, and description of the statement as it was read.
        questions: questions that the pass proposes, in order; only an extraction proposes any.
        tagger: the tagger whose entities are in, or "" (marked when a tagger failed: `!name`).
        losses: what of the replies could not be used; then the segment is `partial`.
        left_out: entities and relations of none of the types of a closed schema.
    """

    segment_id: str
    kind: ContributionKind
    mentions: tuple[Mention, ...] = ()
    statements: tuple[Statement, ...] = ()
    questions: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    tagger: str = ""
    losses: tuple[Loss, ...] = ()
    left_out: int = 0

    @property
    def next_attempt(self) -> int:
        """Number of the first try that was not made yet, if the pass is to be made again."""
        return max((loss.attempt + 1 for loss in self.losses), default=0)


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """How far one segment is; the ledger is the truth about progress.

    Attributes:
        reason: why it is, or is going to be, `partial` or `failed`, else "".
        reasoner: which reasoner, build mode and prompt versions read it.
        merged: the digest of the contributions that its part of the graph was made from, "" as long
            as it has none; told by a store, not written with the row.
    """

    segment_id: str
    state: SegmentState
    reason: str = ""
    reasoner: str = ""
    merged: str = ""
