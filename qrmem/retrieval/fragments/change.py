"""Which files' relations have to be made again after some files have changed, and how much of them.

Most changes leave the ways through a file as they were: no call leads elsewhere. Then only the
changed file's own relations are computed; other files take from these their side of the links.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qrmem.retrieval.fragments.code_graph import CodeGraph
    from qrmem.retrieval.fragments.transit import Transits


@dataclass(frozen=True, slots=True)
class KeptRow:
    """A row with what it was made from.

    Attributes:
        made_of: digest of the file's outline and of where its calls lead.
        within: files that a path within the cut-off leads to, with what the ways through them were.
        packed: the row; unpacked only where it is asked for.
        segments: ids of the file's fragments, with which the row goes.
    """

    made_of: str
    within: Mapping[str, str]
    packed: str
    segments: Sequence[str]


@dataclass(frozen=True, slots=True)
class Change:
    """What a repository's files have become.

    Attributes:
        made_of: of all files now.
        gone: files that are no longer there.
        stale: files whose rows are to be made again.
        passable: changed files among these with the same ways through them as before.
    """

    graph: "CodeGraph"
    transits: "Transits"
    made_of: Mapping[str, str]
    gone: frozenset[str]
    stale: frozenset[str]
    passable: frozenset[str]
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
        gone = frozenset(rows.keys() - made_of.keys())
        changed = {
            path
            for path, digest in made_of.items()
            if path not in rows or rows[path].made_of != digest
        }
        known: dict[str, set[str]] = defaultdict(set)
        for path, kept in rows.items():
            for other in changed & kept.within.keys() - {path}:
                known[other].add(kept.within[other])
        passable = frozenset(
            path
            for path in changed
            if path in known
            and not transits.beside(path) & changed
            and known[path] == {transits.digest(path)}
        )
        moved = (changed - passable) | gone
        stale = changed | graph.within(sorted(moved - gone))
        stale |= {path for path, kept in rows.items() if moved & kept.within.keys()}
        return cls(graph, transits, made_of, gone, frozenset(stale - gone), passable)

    def digest(self, path: str) -> str:
        """Return what stands for the ways through a file."""
        if path not in self._digests:
            self._digests[path] = self.transits.digest(path)
        return self._digests[path]

    def mirrors(self, rows: Mapping[str, KeptRow]) -> dict[str, set[str]]:
        """Return the files whose rows are still good but for links to some, and these."""
        found: dict[str, set[str]] = defaultdict(set)
        for changed in self.passable:
            near = self.graph.within([changed])
            near |= {path for path, kept in rows.items() if changed in kept.within}
            for path in near - self.stale:
                found[path].add(changed)
        return found
