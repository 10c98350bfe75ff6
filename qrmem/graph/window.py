"""Which segments fit the window (QRMeM, section 2.2)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from qrmem.types import Segment

# Which segments fit the window (QRMeM, section 2.2).


@dataclass(frozen=True, slots=True)
class Weighed:
    """A segment that asks for room.

    Attributes:
        score: of S_imp, similarity of the segment to the question; of S_add, that of the edge that
            led to it.
    """

    segment: Segment
    score: float


@dataclass(frozen=True, slots=True)
class Packed:
    """What is read and what is not.

    Attributes:
        read: in document order, whatever the scores.
        dropped: best first.
        tokens: what `read` takes of the room.
    """

    read: tuple[Weighed, ...]
    dropped: tuple[Weighed, ...]
    tokens: int


def pack(
    imp: Sequence[Weighed],
    add: Sequence[Weighed],
    *,
    room: int,
    size: Callable[[Segment], int],
) -> Packed:
    """Fit S_imp and S_add into the window.

    S_imp is kept whole if it fits, and the lowest of S_add are dropped until both fit. If S_imp
    alone does not fit, its lowest are dropped and S_add is empty. A segment that could
    not be read even without its rivals is dropped first, so that it takes nobody else's place.

    Args:
        imp: a segment given twice keeps its best score.
        add: as `imp`; a segment that is in S_imp stays there.
        room: tokens for segments; see `Reasoner.room`.
        size: tokens that a segment takes, label and separators included; see `Reasoner.size`.

    Returns:
        Sizes of `read` sum up to at most `room`, whatever comes in. Of equal scores (rounded to
        1e-4) the earlier in (document id, index) order stays.
    """
    room = max(room, 0)
    first = _ranked(imp)
    kept = {weighed.segment.id for weighed in first}
    second = [weighed for weighed in _ranked(add) if weighed.segment.id not in kept]
    sizes = {weighed.segment.id: size(weighed.segment) for weighed in (*first, *second)}
    overflows = sum(sizes[weighed.segment.id] for weighed in first) > room
    read = _fitting(first, room, sizes)
    if not overflows:
        left = room - sum(sizes[weighed.segment.id] for weighed in read)
        read += _fitting(second, left, sizes)
    ids = {weighed.segment.id for weighed in read}
    return Packed(
        read=tuple(sorted(read, key=_place)),
        dropped=tuple(_ranked(w for w in (*first, *second) if w.segment.id not in ids)),
        tokens=sum(sizes[segment_id] for segment_id in ids),
    )


def _fitting(ranked: Sequence[Weighed], room: int, sizes: dict[str, int]) -> list[Weighed]:
    fitting = [weighed for weighed in ranked if sizes[weighed.segment.id] <= room]
    total = sum(sizes[weighed.segment.id] for weighed in fitting)
    while total > room:
        total -= sizes[fitting.pop().segment.id]
    return fitting


def _ranked(weighed: Iterable[Weighed]) -> list[Weighed]:
    best: dict[str, Weighed] = {}
    for candidate in weighed:
        known = best.get(candidate.segment.id)
        if known is None or candidate.score > known.score:
            best[candidate.segment.id] = candidate
    return sorted(best.values(), key=lambda w: (-round(w.score, 4), _place(w)))


def _place(weighed: Weighed) -> tuple[str, int, str]:
    return weighed.segment.document_id, weighed.segment.index, weighed.segment.id
