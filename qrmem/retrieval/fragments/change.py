"""Which files' relations have to be made again after some files have changed.

A changed file's own relations are computed, and those of the files whose paths went through it by
ways that are others now. The rows of all other files stay as they are kept, with links to what the
file was: of two files' rows, the one that knew the other as it is now says how they are related
(`complete`).
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from qrmem.retrieval.fragments.row import Row

if TYPE_CHECKING:
    from qrmem.retrieval.fragments.transit import Transits


@dataclass(frozen=True, slots=True)
class Origin:
    """What a file's row was made from.

    Attributes:
        made_of: digest of the file's outline and of where its calls lead.
        within: files that a path within the cut-off leads to; for each what stood for the ways
            through it as seen from here, and what it was made of, as `seen` joins them. Texts, as
            the garbage collector need not look at a mapping of these.
    """

    made_of: str
    within: Mapping[str, str]

    def ways(self, other: str) -> str:
        """Return what stood for the ways through another file."""
        return self.within.get(other, "").partition(" ")[0]

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
        gone: files that are no longer there.
        stale: files whose rows are to be made again.
    """

    gone: frozenset[str]
    stale: frozenset[str]

    @classmethod
    def between(
        cls, origins: Mapping[str, Origin], made_of: Mapping[str, str], transits: "Transits"
    ) -> "Change":
        """Compare what the rows that are kept were made from with the files as they are."""
        related = set(chain.from_iterable(origin.within for origin in origins.values()))
        gone = (origins.keys() | related) - made_of.keys()
        stale = {
            path
            for path, digest in made_of.items()
            if path not in origins or origins[path].made_of != digest
        }
        stale |= _estranged(origins)
        rest = {path: origins[path] for path in origins.keys() - stale - gone}
        for path in sorted(stale | gone) if rest else ():
            now = transits.through(path) if path in made_of else {}
            stale |= {
                other for other, origin in rest.items() if origin.ways(path) != now.get(other, "")
            }
        return cls(frozenset(gone), frozenset(stale))


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
