"""Source files for the repository graph, and the definitions that their calls refer to."""

import base64
import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from qrmem.text.code.outline import CallSite, Cover, Definition, Import, Outline

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Serialisation of names and arrays to text, which a store can keep: sizes first, then numbers.


def pack(names: object, arrays: "Sequence[NDArray[Any]]") -> str:
    """Serialise a JSON value and arrays to text; `unpack` reverses it, given the arrays' types."""
    head = json.dumps([names, [array.size for array in arrays]], separators=(",", ":"))
    data = head.encode() + b"\n" + b"".join(array.tobytes() for array in arrays)
    return base64.b64encode(zlib.compress(data, 1)).decode()


def unpack(packed: str, kinds: Sequence[Any]) -> "tuple[Any, list[NDArray[Any]]]":
    """Return the JSON value and the arrays that `pack` serialised.

    Args:
        kinds: dtype of each array.
    """
    head, _, data = zlib.decompress(base64.b64decode(packed)).partition(b"\n")
    names, sizes = json.loads(head)
    arrays, at = [], 0
    for kind, size in zip(kinds, sizes, strict=True):
        arrays.append(np.frombuffer(data, dtype=kind, count=size, offset=at))
        at += arrays[-1].nbytes
    return names, arrays


# A source file's syntax tree for the path search: without leaves, with each fragment's nodes.
#
# Four nodes of five are leaves without a call, and every path from a leaf goes through its parent.
# So the search runs between parents only. The strength of a leaf is its parent's strength times the
# weight of one edge; its strength with itself is 1.


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A syntax tree without most leaves, and the nodes that cover each fragment, as arrays.

    Attributes:
        parents: `(nodes,)`, parent of each kept node, by the new numbers; the root comes first, its
            parent is -1.
        depths: `(nodes,)`, depth of each kept node below the root.
        numbers: `(nodes,)`, number of each kept node in the outline, ascending.
        counts: `(fragments,)`, number of nodes that cover each fragment.
        nodes: `(pairs,)`, number in the outline of each covering node, fragment by fragment.
        anchors: `(pairs,)`, new number of each covering node, or of its parent for a leaf that was
            left out.
        lengths: `(pairs,)`, number of the fragment's characters in each covering node.
    """

    parents: "NDArray[np.int32]"
    depths: "NDArray[np.int32]"
    numbers: "NDArray[np.int32]"
    counts: "NDArray[np.int32]"
    nodes: "NDArray[np.int32]"
    anchors: "NDArray[np.int32]"
    lengths: "NDArray[np.int32]"

    @classmethod
    def of(
        cls, parents: Sequence[int], stay: Iterable[int], covers: Sequence[Mapping[int, int]]
    ) -> "Shape":
        """Return the shape of a tree.

        Args:
            parents: parent of each node. A parent comes before its children; the root comes first,
                its parent is -1.
            stay: leaves to keep.
            covers: for each fragment, the nodes that cover it, with lengths in characters.
        """
        above = np.asarray(parents, dtype=np.int32)
        stays = np.zeros(above.size, dtype=bool)
        stays[above[1:]] = True
        stays[[0, *stay]] = True
        depths = [0]
        for parent in parents[1:]:
            depths.append(depths[parent] + 1)
        new = (np.cumsum(stays) - 1).astype(np.int32)
        nodes = np.array([node for cover in covers for node in cover], dtype=np.int32)
        above_kept = above[stays]
        return cls(
            parents=np.where(above_kept >= 0, new[above_kept], -1).astype(np.int32),
            depths=np.array(depths, dtype=np.int32)[stays],
            numbers=np.flatnonzero(stays).astype(np.int32),
            counts=np.array([len(cover) for cover in covers], dtype=np.int32),
            nodes=nodes,
            anchors=new[np.where(stays[nodes], nodes, above[nodes])],
            lengths=np.array([n for cover in covers for n in cover.values()], dtype=np.int32),
        )

    @property
    def size(self) -> int:
        """Number of kept nodes."""
        return int(self.parents.size)

    @property
    def fragments(self) -> int:
        """Number of fragments."""
        return int(self.counts.size)

    @property
    def leaves(self) -> "NDArray[np.bool_]":
        """`(pairs,)`: whether each covering node is a leaf that was left out."""
        result: NDArray[np.bool_] = self.numbers[self.anchors] != self.nodes
        return result

    def shares(self) -> "NDArray[np.float64]":
        """Return `(pairs,)`: the share of the fragment in each covering node, in (0, 1]."""
        if not self.counts.size:
            return np.zeros(0)
        totals = np.add.reduceat(self.lengths, np.cumsum(self.counts) - self.counts)
        result: NDArray[np.float64] = self.lengths / np.repeat(totals, self.counts)
        return result

    @property
    def arrays(self) -> "list[NDArray[np.int32]]":
        """All fields, in the order of the constructor."""
        return [getattr(self, field.name) for field in fields(self)]


HUB = 50
"""A definition with more calls than this is ignored, like a stop word."""
AMBIGUOUS = 8
"""A call of a name with more definitions than this is ignored as ambiguous."""
_PACKAGES = {"__init__", "index", "mod", "lib"}
"""Names of files that are imported by the name of their folder."""
_OWN_CRATE = {"crate", "self", "super"}


@dataclass(frozen=True, slots=True, eq=False)
class FileCalls:
    """A file's calls, grouped by name and base; arrays, as objects for each call would be slow.

    Attributes:
        names: name of each group: the function that is called.
        bases: base of each group: the text before the dot, "" without one.
        starts: `(groups + 1,)`, start of each group in `nodes`, then the end.
        nodes: numbers of the calls in the outline.
    """

    names: Sequence[str]
    bases: Sequence[str]
    starts: "NDArray[np.int32]"
    nodes: "NDArray[np.int32]"

    @classmethod
    def of(cls, calls: Iterable[CallSite]) -> "FileCalls":
        """Group calls by name and base, without duplicates."""
        calls_by_name: dict[tuple[str, str], dict[int, None]] = defaultdict(dict)
        for call in calls:
            calls_by_name[call.name, call.base][call.node] = None
        nodes = np.array(
            [node for of_one in calls_by_name.values() for node in of_one], dtype=np.int32
        )
        starts = np.cumsum([0, *map(len, calls_by_name.values())], dtype=np.int32)
        names, bases = [name for name, _ in calls_by_name], [base for _, base in calls_by_name]
        return cls(names, bases, starts, nodes)

    def said(self) -> Iterator[tuple[str, str, slice]]:
        """Yield name, base and the slice of `nodes` of each group."""
        bounds = self.starts.tolist()
        for name, base, start, end in zip(
            self.names, self.bases, bounds[:-1], bounds[1:], strict=True
        ):
            yield name, base, slice(start, end)

    @property
    def arrays(self) -> "list[NDArray[np.int32]]":
        """The array fields, in the order of the constructor."""
        return [self.starts, self.nodes]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a repository: its outline without the text, and the nodes of its fragments.

    Attributes:
        path: the document's id: the path relative to the folder that was added.
        shape: shape of the syntax tree.
        definitions: definitions in the file, by the outline's node numbers.
        calls: calls in the file, by the outline's node numbers.
        imports: imports of the file.
    """

    path: str
    shape: Shape
    definitions: Sequence[Definition]
    calls: FileCalls
    imports: Sequence[Import]

    @classmethod
    def of(
        cls, path: str, text: str, outline: Outline, fragments: Iterable[tuple[int, int]]
    ) -> "SourceFile":
        """Return a file from its outline and the spans of its fragments (offsets in `text`)."""
        cover = Cover(outline, text)
        # A fragment without any text in it belongs to the file as a whole.
        covers = [cover.of(start, end) or {0: 1} for start, end in fragments]
        stay = {d.node for d in outline.definitions} | {c.node for c in outline.calls}
        shape = Shape.of(outline.parents, stay, covers)
        return cls(path, shape, outline.definitions, FileCalls.of(outline.calls), outline.imports)

    def packed(self) -> str:
        """Serialise to text; `unpacked` reverses it."""
        names = [
            [[d.name, d.node, d.kind, d.owner] for d in self.definitions],
            self.calls.names,
            self.calls.bases,
            [[i.name, list(i.module), i.original] for i in self.imports],
        ]
        return pack(names, [*self.shape.arrays, *self.calls.arrays])

    @classmethod
    def unpacked(cls, path: str, packed: str) -> "SourceFile":
        """Return the file that `packed` serialised."""
        of_shape, of_calls = len(fields(Shape)), 2
        names, arrays = unpack(packed, [np.int32] * (of_shape + of_calls))
        definitions, call_names, bases, imports = names
        return cls(
            path,
            Shape(*arrays[:of_shape]),
            [Definition(*definition) for definition in definitions],
            FileCalls(call_names, bases, *arrays[of_shape:]),
            [Import(name, tuple(module), is_own) for name, module, is_own in imports],
        )


class Edge(NamedTuple):
    """A call: from a node of one file to a definition in the same or another file.

    Attributes:
        node: number of the call in its file's outline.
        path: path of the file with the definition.
        target: number of the definition in that file's outline.
    """

    node: int
    path: str
    target: int


def resolved(files: Mapping[str, SourceFile]) -> dict[str, list[Edge]]:
    """Return the calls of all files, by path, without calls to definitions above `HUB`."""
    resolver = Resolver(files)
    edges = {path: resolver.edges(file) for path, file in files.items()}
    call_counts = Counter(
        (edge.path, edge.target) for file_edges in edges.values() for edge in file_edges
    )
    return {
        path: [edge for edge in file_edges if call_counts[edge.path, edge.target] <= HUB]
        for path, file_edges in edges.items()
    }


class Resolver:
    """Finds the definitions that calls refer to, over all files of a repository."""

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
        """Return the definitions that a file's calls refer to, in order, without duplicates."""
        imported = {import_found.name: import_found for import_found in file.imports}
        nodes = file.calls.nodes.tolist()
        edges: dict[Edge, None] = {}
        for name, base, places in file.calls.said():
            if name not in self._places and name not in imported:
                continue  # the usual case: names of the language, and of other packages
            for path, target in self._look_up(name, base, file.path, imported):
                for node in nodes[places]:
                    if target != node or path != file.path:
                        edges[Edge(node, path, target)] = None
        return list(edges)

    def _look_up(
        self, name: str, base: str, path: str, imported: Mapping[str, Import]
    ) -> Sequence[tuple[str, int]]:
        """Look in the same file, then in imports, then in the repository; return all matches."""
        local_matches = self._local[path].get(name, ())
        import_known = imported.get(base) or imported.get(base.partition(".")[0] if base else name)
        if import_known is not None and (base or not local_matches):
            return _few(self._imported(name, base, import_known, path))
        return _few(local_matches or self._places.get(name, ()))

    def _imported(self, name: str, base: str, known: Import, path: str) -> list[tuple[str, int]]:
        inner = tuple(base.split(".")[1:]) if base != known.name else ()
        name = name if base else known.original or name
        matches: list[tuple[str, int]] = []
        for module in ((*known.module, known.original, *inner), (*known.module, *inner)):
            for other in self._files(tuple(part for part in module if part), path):
                matches += self._local[other].get(name, [])
            if matches:
                break
        return list(dict.fromkeys(matches))

    def _files(self, module: tuple[str, ...], path: str) -> list[str]:
        """Return the files of a module that a file imports; none for a foreign module."""
        is_relative = bool(module) and not module[0].strip(".")
        seen_from = path.rpartition("/")[0] if is_relative else ""
        cache_key = module, seen_from
        if cache_key not in self._known:
            find = self._beside if is_relative else self._anywhere
            self._known[cache_key] = find(module, seen_from)
        return self._known[cache_key]

    def _beside(self, module: tuple[str, ...], folder: str) -> list[str]:
        above = PurePosixPath(folder).parts
        path_wanted = (*above[: len(above) - (len(module[0]) - 1)], *module[1:])
        modules_named = self._modules.get(path_wanted[-1], []) if path_wanted else []
        return [file for parts, file in modules_named if parts == path_wanted]

    def _anywhere(self, module: tuple[str, ...], _: str) -> list[str]:
        module = tuple(part for part in module if part not in _OWN_CRATE)
        modules_named = self._modules.get(module[-1], []) if module else []
        return [file for parts, file in modules_named if _one_ends(parts, module)]


def _few(found: Sequence[tuple[str, int]]) -> Sequence[tuple[str, int]]:
    return found if len(found) <= AMBIGUOUS else ()


def _modules_of(path: str) -> list[tuple[str, ...]]:
    """Return the module names by which a file can be imported, as parts."""
    pure = PurePosixPath(path)
    folder = pure.parent.parts
    if pure.stem in _PACKAGES:
        return [folder] if folder else []
    modules = [(*folder, pure.stem)]
    if folder and pure.suffix in {".go", ".rs", ".java"}:
        modules.append(folder)
    return modules


def _one_ends(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    least = min(len(one), len(other))
    return one[-least:] == other[-least:]
