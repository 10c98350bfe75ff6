"""What is read in one chat call: a segment, or several short ones.

Which segments share a call depends on the text and on what was given together alone: not on what
was read before, on concurrency, or on where an earlier run was stopped.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from qrmem.types import Contribution, Reading, Segment

MOST = 8
"""Segments that share a call at most, however short they are."""


@dataclass(frozen=True, slots=True)
class Task:
    """A segment to read, and with what.

    Attributes:
        known: what its first reading brought; for a first reading what an earlier one brought, of
            which something was lost, else `None`.
        questions: accepted questions to read it again with.
        is_counted: whether a progress bar has seen it already.
    """

    segment: Segment
    reading: Reading
    known: Contribution | None = None
    questions: tuple[str, ...] = ()
    is_counted: bool = False


@dataclass(slots=True)
class Call:
    """Segments to read.

    Attributes:
        tasks: what is still to be read.
        is_shared: whether they are to be tried together first; what comes of none is read alone.
    """

    tasks: list[Task]
    is_shared: bool = False


def shares(segments: Iterable[Segment], limit: int) -> dict[str, tuple[str, ...]]:
    """Return, for each segment that shares a call, the ids of all that do, itself included.

    Segments of one document share, for they have its summary in common; and so do documents of a
    single segment.

    Args:
        segments: in order.
        limit: tokens of a call's segments; a segment of more than half of it has its own call.
    """
    given = list(segments)
    sizes = Counter(segment.document_id for segment in given)
    filling: dict[str, list[Segment]] = {}
    groups: list[list[Segment]] = []
    for segment in given:
        if 2 * segment.tokens > limit:
            continue
        key = segment.document_id if sizes[segment.document_id] > 1 else ""
        group = filling.get(key)
        is_full = group is None or len(group) == MOST
        if group is None or is_full or sum(s.tokens for s in group) + segment.tokens > limit:
            filling[key] = group = []
            groups.append(group)
        group.append(segment)
    found = (tuple(segment.id for segment in group) for group in groups)
    return {id: ids for ids in found if len(ids) > 1 for id in ids}


def calls(
    tasks: Sequence[Task],
    shared: Mapping[str, tuple[str, ...]],
    among: Collection[str] | None = None,
) -> list[Call]:
    """Return the calls that read some segments.

    A call is shared if all its segments are to be read, and for the first time: where a run was
    stopped, and some were read, the others are those that had to be read alone.

    Args:
        shared: see `shares`.
        among: the segments that this phase reads at all, earlier runs included; `None`: every one.
    """
    waiting = {task.segment.id: task for task in tasks}
    made = []
    for task in tasks:
        if task.segment.id not in waiting:
            continue
        ids = shared.get(task.segment.id, ())
        members = [id for id in ids if among is None or id in among]
        together = [waiting[id] for id in members if id in waiting]
        if 1 < len(together) == len(members) and all(t.reading.attempt == 0 for t in together):
            made.append(Call(together, is_shared=True))
        else:
            made.append(Call([task]))
        for read in made[-1].tasks:
            del waiting[read.segment.id]
    return made


__all__ = ["Call", "Task", "calls", "shares"]
