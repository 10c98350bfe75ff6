"""From names and triples of a passage to the segments of its document that hold them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from qrmem.graph.occurrences import Occurrences
from qrmem.io.openie.reading import Passage, Triple
from qrmem.text.names import normalise_name
from qrmem.types import Contribution, Mention, Segment, Statement


@dataclass(slots=True)
class Placed:
    """What came of a passage.

    Attributes:
        contributions: one for each segment that holds something, in order.
        entities: names that stand in the document.
        triples: triples both ends of which stand in one segment of it.
        absent: names, and triples, that do not.
    """

    contributions: list[Contribution]
    entities: int = 0
    triples: int = 0
    absent_entities: int = 0
    absent_triples: int = 0


def place(segments: Sequence[Segment], passage: Passage) -> Placed:
    """Find where the names and triples of a passage stand.

    A name is an entity of every segment that it occurs in; a triple belongs to the first segment
    that holds both its ends. What does not occur as the text spells it is counted and left out, as
    it would be for a model's words.

    Args:
        segments: of the passage's document, or the one that it is.
    """
    pages = [_Page(segment) for segment in segments]
    done = Placed([])
    for name in dict.fromkeys(passage.entities):
        found = [page for page in pages if page.add_name(name)]
        done.entities += bool(found)
        done.absent_entities += not found
    for triple in dict.fromkeys(passage.triples):
        is_placed = any(page.add(triple) for page in pages)
        done.triples += is_placed
        done.absent_triples += not is_placed
    done.contributions += [page.contribution for page in pages if page.is_filled]
    return done


def united(before: Contribution, added: Contribution) -> Contribution:
    """Return a first reading with what another reader found beside it."""
    known = {normalise_name(form) for m in before.mentions for form in (m.name, *m.forms)}
    mentions = [m for m in added.mentions if normalise_name(m.name) not in known]
    statements = [s for s in added.statements if s not in before.statements]
    return replace(
        before,
        mentions=(*before.mentions, *mentions),
        statements=(*before.statements, *statements),
    )


class _Page:
    """One segment, while it is filled."""

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._in_text = Occurrences(segment.text)
        self._spelled: dict[str, str | None] = {}
        self._statements: dict[Statement, None] = {}
        self._names: dict[str, None] = {}

    @property
    def is_filled(self) -> bool:
        """Whether anything stands here."""
        return bool(self._names)

    @property
    def contribution(self) -> Contribution:
        """What stands here, as a first reading of the segment."""
        counts = self._in_text.counted(self._names)
        return Contribution(
            self._segment.id,
            "extraction",
            mentions=tuple(Mention(n, "", (n,), counts[n]) for n in self._names),
            statements=tuple(self._statements),
        )

    def add_name(self, name: str) -> bool:
        """Take a name if the segment holds it."""
        spelled = self._find(name)
        if spelled is not None:
            self._names[spelled] = None
        return spelled is not None

    def add(self, triple: Triple) -> bool:
        """Take a triple if the segment holds both its ends."""
        head, tail = self._find(triple.subject), self._find(triple.object)
        if head is None or tail is None:
            return False
        self._names |= {head: None, tail: None}
        description = f"{triple.subject} {triple.relation} {triple.object}"
        self._statements[Statement(head, tail, description)] = None
        return True

    def _find(self, name: str) -> str | None:
        if name not in self._spelled:
            found = self._in_text.spelled(name)
            self._spelled[name] = found if found and normalise_name(found) else None
        return self._spelled[name]
