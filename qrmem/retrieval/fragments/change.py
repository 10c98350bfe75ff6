"""Which files' relations have to be made again after some files have changed, and how much of them.

Most changes leave the ways through a file as they were: no call leads elsewhere. Then only the
changed file's own relations are computed. The rows of other files stay as they are kept, with links
to what the file was: of two files' rows, the one that knew the other as it is now says how they are
related (`complete`).
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qrmem.retrieval.fragments.row import Row

if TYPE_CHECKING:
    from qrmem.retrieval.fragments.code_graph import CodeGraph
    from qrmem.retrieval.fragments.transit import Transits


@dataclass(frozen=True, slots=True)
class Origin:
    """What a file's row was made from.

    Attributes:
        made_of: digest of the file's outline and of where its calls lead.
        within: files that a path within the cut-off leads to; for each what stood for the ways
            through it, and what it was made of, as `seen` joins them. Texts, as the garbage
            collector need not look at a mapping of these.
    """

    made_of: str
    within: Mapping[str, str]

    def ways(self, other: str) -> str:
        """Return what stood for the ways through another file within."""
        return self.within[other].partition(" ")[0]

    def knows(self, other: str, as_it_is: "Origin") -> bool:
        """Whether the row was made with the other file as that is now."""
        return self.within.get(other, "").endswith(f" {as_it_is.made_of}")


def seen(ways: str, made_of: str) -> str:
    """Return what a row keeps of another file."""
    return f"{ways} {made_of}"


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
    _ways: dict[str, str]

    @classmethod
    def between(
        cls,
        origins: Mapping[str, Origin],
        made_of: Mapping[str, str],
        graph: "CodeGraph",
        transits: "Transits",
    ) -> "Change":
        """Compare what the rows that are kept were made from with the files as they are."""
        known = _ways_known(origins)
        gone = (origins.keys() | known.keys()) - made_of.keys()
        changed = {
            path
            for path, digest in made_of.items()
            if path not in origins or origins[path].made_of != digest
        }
        changed |= _estranged(origins)
        passable = {
            path
            for path in changed
            if path in known
            and not transits.beside(path) & changed
            and known[path] == {transits.digest(path)}
        }
        moved = (changed - passable) | gone
        stale = changed | graph.within(sorted(moved - gone))
        stale |= {path for path, kept in origins.items() if moved & kept.within.keys()}
        # With every way as it was, the ways through a file are what all rows say they are.
        still = {} if moved else {path: min(ways) for path, ways in known.items() if len(ways) == 1}
        return cls(graph, transits, made_of, frozenset(gone), frozenset(stale - gone), still)

    def seen(self, path: str) -> str:
        """Return what a row made now keeps of a file."""
        if path not in self._ways:
            self._ways[path] = self.transits.digest(path)
        return seen(self._ways[path], self.made_of[path])


def _ways_known(origins: Mapping[str, Origin]) -> dict[str, set[str]]:
    """Return, for each file within reach of another, what the others' rows say of ways through."""
    known: dict[str, set[str]] = defaultdict(set)
    for path, origin in origins.items():
        for other, was in origin.within.items():
            if other != path:
                known[other].add(was.partition(" ")[0])
    return known


def _estranged(origins: Mapping[str, Origin]) -> set[str]:
    """Return the files of which neither knows the other: two processes wrote at the same time."""
    return {
        path
        for path, mine in origins.items()
        for other in mine.within
        if other in origins
        and not mine.knows(other, origins[other])
        and not origins[other].knows(path, mine)
    }


def complete(rows: Mapping[str, Row], origins: Mapping[str, Origin]) -> dict[str, Row]:
    """Return the rows of all files; where one was made before the other changed, mirrored."""
    without: dict[str, set[str]] = {}
    mirrors: dict[str, list[Row]] = defaultdict(list)
    for path, row in rows.items():
        mine = origins[path]
        known = {other for other in mine.within if mine.knows(other, origins[other])}
        without[path] = mine.within.keys() - known
        wanted = {other for other in known if not origins[other].knows(path, mine)}
        for other, mirror in row.mirrors(path, wanted).items() if wanted else ():
            mirrors[other].append(mirror)
    return {
        path: row.completed(without[path], mirrors[path])
        if without[path] or path in mirrors
        else row
        for path, row in rows.items()
    }
