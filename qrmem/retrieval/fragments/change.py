"""Which files' relations have to be made again after some files have changed, and how much of them.

Most changes leave the ways through a file as they were: no call leads elsewhere. Then only the
changed file's own relations are computed. The rows of other files stay as they are kept, with links
to what the file was: of two files' rows, the one that knew the other as it is now says how they are
related (`complete`).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from qrmem.retrieval.fragments.row import Row

if TYPE_CHECKING:
    from qrmem.retrieval.fragments.code_graph import CodeGraph
    from qrmem.retrieval.fragments.transit import Transits


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A row with what it was made from.

    Attributes:
        made_of: digest of the file's outline and of where its calls lead.
        within: files that a path within the cut-off leads to, with what the ways through them were,
            and what they were made of.
        packed: the row; unpacked only where it is asked for.
    """

    made_of: str
    within: Mapping[str, Sequence[str]]
    packed: str

    def knows(self, other: str, as_it_is: "KeptRow") -> bool:
        """Whether it was made with the other file as that is now."""
        return other in self.within and self.within[other][1] == as_it_is.made_of


@dataclass(frozen=True, slots=True)
class Change:
    """What a repository's files have become.

    Attributes:
        made_of: of all files now.
        gone: files that are no longer there.
        stale: files whose rows are to be made again.
    """

    graph: "CodeGraph"
    transits: "Transits"
    made_of: Mapping[str, str]
    gone: frozenset[str]
    stale: frozenset[str]
    _digests: dict[str, str] = field(default_factory=dict)

    @classmethod
    def between(
        cls,
        rows: Mapping[str, KeptRow],
        made_of: Mapping[str, str],
        graph: "CodeGraph",
        transits: "Transits",
    ) -> "Change":
        """Compare the rows that are kept with the files as they are."""
        gone = frozenset(rows.keys() | _related(rows)) - made_of.keys()
        changed = {
            path
            for path, digest in made_of.items()
            if path not in rows or rows[path].made_of != digest
        }
        changed |= _estranged(rows)
        known: dict[str, set[str]] = defaultdict(set)
        for path, kept in rows.items():
            for other in changed & kept.within.keys() - {path}:
                known[other].add(kept.within[other][0])
        passable = {
            path
            for path in changed
            if path in known
            and not transits.beside(path) & changed
            and known[path] == {transits.digest(path)}
        }
        moved = (changed - passable) | gone
        stale = changed | graph.within(sorted(moved - gone))
        stale |= {path for path, kept in rows.items() if moved & kept.within.keys()}
        return cls(graph, transits, made_of, gone, frozenset(stale - gone))

    def seen(self, path: str) -> list[str]:
        """Return what stands for the ways through a file, and for what it is made of."""
        if path not in self._digests:
            self._digests[path] = self.transits.digest(path)
        return [self._digests[path], self.made_of[path]]


def _related(rows: Mapping[str, KeptRow]) -> set[str]:
    """Return the files of which any row knows; one that is gone may have no row itself."""
    return set(chain.from_iterable(kept.within for kept in rows.values()))


def _estranged(rows: Mapping[str, KeptRow]) -> set[str]:
    """Return the files of which neither knows the other: two processes wrote at the same time."""
    return {
        path
        for path, mine in rows.items()
        for other in mine.within
        if other in rows
        and not mine.knows(other, rows[other])
        and not rows[other].knows(path, mine)
    }


def complete(kept: Mapping[str, KeptRow]) -> dict[str, Row]:
    """Return the rows of all files; where one was made before the other changed, mirrored."""
    rows = {path: Row.unpacked(one.packed) for path, one in kept.items()}
    without: dict[str, set[str]] = defaultdict(set)
    mirrors: dict[str, list[Row]] = defaultdict(list)
    for path, mine in kept.items():
        known = {other for other in mine.within if mine.knows(other, kept[other])}
        without[path] = mine.within.keys() - known
        wanted = {other for other in known if not kept[other].knows(path, mine)}
        for other, mirror in rows[path].mirrors(path, wanted).items() if wanted else ():
            mirrors[other].append(mirror)
    for path in {path for path in rows if without[path] or mirrors[path]}:
        rows[path] = rows[path].completed(without[path], mirrors[path])
    return rows
