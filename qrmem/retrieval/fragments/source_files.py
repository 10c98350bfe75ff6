"""Source files as the repository graph sees them, and what their calls mean."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from qrmem.retrieval.fragments.packing import pack, unpack
from qrmem.retrieval.fragments.shape import Shape
from qrmem.text.code.outline import Call, Cover, Definition, Import, Outline

if TYPE_CHECKING:
    from numpy.typing import NDArray

HUB = 50
"""Calls beyond which a definition, like a stop word, relates nobody to anybody."""
AMBIGUOUS = 8
"""Definitions of one name beyond which a call of it says nothing."""
_PACKAGES = {"__init__", "index", "mod", "lib"}
"""Files that stand for their folder."""
_OWN_CRATE = {"crate", "self", "super"}


@dataclass(frozen=True, slots=True, eq=False)
class Calls:
    """A file's calls by what they say: thousands of objects for each file would slow every look.

    Attributes:
        names: of what is called, for each way of saying it.
        bases: what stands before the dot there.
        starts: where the calls of each begin in `nodes`, and the end.
        nodes: of the outline, the calls themselves.
    """

    names: Sequence[str]
    bases: Sequence[str]
    starts: "NDArray[np.int32]"
    nodes: "NDArray[np.int32]"

    @classmethod
    def of(cls, calls: Iterable[Call]) -> "Calls":
        """Group some calls, without repeats."""
        found: dict[tuple[str, str], dict[int, None]] = defaultdict(dict)
        for call in calls:
            found[call.name, call.base][call.node] = None
        nodes = np.array([node for of_one in found.values() for node in of_one], dtype=np.int32)
        starts = np.cumsum([0, *map(len, found.values())], dtype=np.int32)
        names, bases = [name for name, _ in found], [base for _, base in found]
        return cls(names, bases, starts, nodes)

    def said(self) -> Iterator[tuple[str, str, slice]]:
        """Yield name, base and the places of the calls."""
        bounds = self.starts.tolist()
        for name, base, start, end in zip(
            self.names, self.bases, bounds[:-1], bounds[1:], strict=True
        ):
            yield name, base, slice(start, end)

    @property
    def arrays(self) -> "list[NDArray[np.int32]]":
        """Its arrays, in the order in which `Calls` takes them."""
        return [self.starts, self.nodes]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a repository: its outline without the text, and its fragments' nodes.

    Attributes:
        path: relative to what was added; the document's id.
        shape: of its syntax tree; definitions and calls name nodes as the outline does.
    """

    path: str
    shape: Shape
    definitions: Sequence[Definition]
    calls: Calls
    imports: Sequence[Import]

    @classmethod
    def of(
        cls, path: str, text: str, outline: Outline, fragments: Iterable[tuple[int, int]]
    ) -> "SourceFile":
        """Return a file from its outline and the spans of its fragments."""
        cover = Cover(outline, text)
        # A fragment without any text in it belongs to the file as a whole.
        covers = [cover.of(start, end) or {0: 1} for start, end in fragments]
        stay = {d.node for d in outline.definitions} | {c.node for c in outline.calls}
        shape = Shape.of(outline.parents, stay, covers)
        return cls(path, shape, outline.definitions, Calls.of(outline.calls), outline.imports)

    def packed(self) -> str:
        """Return it as text; `unpacked` makes it again."""
        names = [
            [[d.name, d.node, d.kind, d.owner] for d in self.definitions],
            self.calls.names,
            self.calls.bases,
            [[i.name, list(i.module), i.original] for i in self.imports],
        ]
        return pack(names, [*self.shape.arrays, *self.calls.arrays])

    @classmethod
    def unpacked(cls, path: str, packed: str) -> "SourceFile":
        """Return what was packed."""
        of_shape, of_calls = len(fields(Shape)), 2
        names, arrays = unpack(packed, [np.int32] * (of_shape + of_calls))
        definitions, called, bases, imports = names
        return cls(
            path,
            Shape(*arrays[:of_shape]),
            [Definition(*found) for found in definitions],
            Calls(called, bases, *arrays[of_shape:]),
            [Import(name, tuple(module), own) for name, module, own in imports],
        )


class Edge(NamedTuple):
    """A call to a definition: from a node of one file to one of another, or of the same."""

    node: int
    path: str
    target: int


def resolved(files: Mapping[str, SourceFile]) -> dict[str, list[Edge]]:
    """Return where the calls of all files lead, without those to what everybody calls."""
    resolver = Resolver(files)
    edges = {path: resolver.edges(file) for path, file in files.items()}
    called = Counter((edge.path, edge.target) for found in edges.values() for edge in found)
    return {
        path: [edge for edge in found if called[edge.path, edge.target] <= HUB]
        for path, found in edges.items()
    }


class Resolver:
    """Finds the definitions that calls mean, over all files of a repository."""

    def __init__(self, files: Mapping[str, SourceFile]) -> None:
        self._places: dict[str, list[tuple[str, int]]] = defaultdict(list)
        self._modules: dict[str, list[tuple[tuple[str, ...], str]]] = defaultdict(list)
        self._local: dict[str, dict[str, list[tuple[str, int]]]] = {}
        self._known: dict[tuple[tuple[str, ...], str], list[str]] = {}
        for path, file in files.items():
            local: dict[str, list[tuple[str, int]]] = defaultdict(list)
            for definition in file.definitions:
                local[definition.name].append((path, definition.node))
                self._places[definition.name].append((path, definition.node))
            self._local[path] = local
            for module in _modules_of(path):
                self._modules[module[-1]].append((module, path))

    def edges(self, file: SourceFile) -> list[Edge]:
        """Return where a file's calls lead, without repeats, in order."""
        imported = {found.name: found for found in file.imports}
        nodes = file.calls.nodes.tolist()
        edges: dict[Edge, None] = {}
        for name, base, places in file.calls.said():
            if name not in self._places and name not in imported:
                continue  # most names: the language's own, and those of other packages
            for path, target in self._meant(name, base, file.path, imported):
                for node in nodes[places]:
                    if target != node or path != file.path:
                        edges[Edge(node, path, target)] = None
        return list(edges)

    def _meant(
        self, name: str, base: str, path: str, imported: Mapping[str, Import]
    ) -> Sequence[tuple[str, int]]:
        """Same file first, then what is imported, then the repository; of several, all."""
        own = self._local[path].get(name, ())
        known = imported.get(base) or imported.get(base.partition(".")[0] if base else name)
        if known is not None and (base or not own):
            return _few(self._imported(name, base, known, path))
        return _few(own or self._places.get(name, ()))

    def _imported(self, name: str, base: str, known: Import, path: str) -> list[tuple[str, int]]:
        inner = tuple(base.split(".")[1:]) if base != known.name else ()
        name = name if base else known.original or name
        found: list[tuple[str, int]] = []
        for module in ((*known.module, known.original, *inner), (*known.module, *inner)):
            for other in self._files(tuple(part for part in module if part), path):
                found += self._local[other].get(name, [])
            if found:
                break
        return list(dict.fromkeys(found))

    def _files(self, module: tuple[str, ...], path: str) -> list[str]:
        """Return the files that a module is, seen from a file; none for one from elsewhere."""
        is_relative = bool(module) and not module[0].strip(".")
        seen_from = path.rpartition("/")[0] if is_relative else ""
        asked = module, seen_from
        if asked not in self._known:
            find = self._beside if is_relative else self._anywhere
            self._known[asked] = find(module, seen_from)
        return self._known[asked]

    def _beside(self, module: tuple[str, ...], folder: str) -> list[str]:
        above = PurePosixPath(folder).parts
        wanted = (*above[: len(above) - (len(module[0]) - 1)], *module[1:])
        named = self._modules.get(wanted[-1], []) if wanted else []
        return [file for parts, file in named if parts == wanted]

    def _anywhere(self, module: tuple[str, ...], _: str) -> list[str]:
        module = tuple(part for part in module if part not in _OWN_CRATE)
        named = self._modules.get(module[-1], []) if module else []
        return [file for parts, file in named if _one_ends(parts, module)]


def _few(found: Sequence[tuple[str, int]]) -> Sequence[tuple[str, int]]:
    return found if len(found) <= AMBIGUOUS else ()


def _modules_of(path: str) -> list[tuple[str, ...]]:
    """Return what a file can be imported as: its path, and its folder, as parts."""
    pure = PurePosixPath(path)
    folder = pure.parent.parts
    if pure.stem in _PACKAGES:
        return [folder] if folder else []
    found = [(*folder, pure.stem)]
    if folder and pure.suffix in {".go", ".rs", ".java"}:
        found.append(folder)
    return found


def _one_ends(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    least = min(len(one), len(other))
    return one[-least:] == other[-least:]
