"""Source files as the repository graph sees them, and what their calls mean (SPEC 2.4.13)."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from qrmem.text.code.outline import Call, Cover, Definition, Import, Outline

HUB = 50
"""Calls beyond which a definition, like a stop word, relates nobody to anybody."""
AMBIGUOUS = 8
"""Definitions of one name beyond which a call of it says nothing."""
_PACKAGES = {"__init__", "index", "mod", "lib"}
"""Files that stand for their folder."""
_OWN_CRATE = {"crate", "self", "super"}


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file of a repository: its outline without the text, and its fragments' nodes.

    Attributes:
        path: relative to what was added; the document's id.
        covers: for each fragment in order, the nodes that stand for it, with their lengths.
    """

    path: str
    parents: Sequence[int]
    definitions: Sequence[Definition]
    calls: Sequence[Call]
    imports: Sequence[Import]
    covers: Sequence[Mapping[int, int]]

    @classmethod
    def of(
        cls, path: str, text: str, outline: Outline, fragments: Iterable[tuple[int, int]]
    ) -> "SourceFile":
        """Return a file from its outline and the spans of its fragments."""
        cover = Cover(outline, text)
        # A fragment without any text in it belongs to the file as a whole.
        covers = [cover.of(start, end) or {0: 1} for start, end in fragments]
        return cls(
            path, outline.parents, outline.definitions, outline.calls, outline.imports, covers
        )

    def packed(self) -> dict[str, Any]:
        """Return it as JSON can hold it; `unpacked` makes it again."""
        return {
            "parents": list(self.parents),
            "definitions": [[d.name, d.node, d.kind, d.owner] for d in self.definitions],
            "calls": [[c.node, c.hops, c.name, c.base] for c in self.calls],
            "imports": [[i.name, list(i.module), i.original] for i in self.imports],
            "covers": [[n for pair in cover.items() for n in pair] for cover in self.covers],
        }

    @classmethod
    def unpacked(cls, path: str, packed: Mapping[str, Any]) -> "SourceFile":
        """Return what was packed."""
        return cls(
            path,
            packed["parents"],
            [Definition(*found) for found in packed["definitions"]],
            [Call(*found) for found in packed["calls"]],
            [Import(name, tuple(module), own) for name, module, own in packed["imports"]],
            [dict(zip(flat[::2], flat[1::2], strict=True)) for flat in packed["covers"]],
        )


@dataclass(frozen=True, slots=True)
class Edge:
    """A call to a definition: from a node of one file, so many edges above the call, to another."""

    node: int
    hops: int
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
        edges = {
            Edge(call.node, call.hops, path, target): None
            for call in file.calls
            for path, target in self._meant(call, file.path, imported)
            if (path, target) != (file.path, call.node)
        }
        return list(edges)

    def _meant(
        self, call: Call, path: str, imported: Mapping[str, Import]
    ) -> Sequence[tuple[str, int]]:
        """Same file first, then what is imported, then the repository; of several, all."""
        own = self._local[path].get(call.name, [])
        start = call.base.split(".")[0] if call.base else call.name
        known = imported.get(call.base) or imported.get(start)
        if known is not None and (call.base or not own):
            return _few(self._imported(call, known, path))
        if own:
            return _few(own)
        return _few(self._places.get(call.name, []))

    def _imported(self, call: Call, known: Import, path: str) -> list[tuple[str, int]]:
        name = call.name if call.base else known.original or call.name
        inner = tuple(call.base.split(".")[1:]) if call.base != known.name else ()
        found: list[tuple[str, int]] = []
        for module in ((*known.module, known.original, *inner), (*known.module, *inner)):
            for other in self._files(tuple(part for part in module if part), path):
                found += self._local[other].get(name, [])
            if found:
                break
        return list(dict.fromkeys(found))

    def _files(self, module: tuple[str, ...], path: str) -> list[str]:
        """Return the files that a module is, seen from a file; none for one from elsewhere."""
        if module and not module[0].strip("."):
            folder = PurePosixPath(path).parent.parts
            up = len(module[0]) - 1
            wanted = (*folder[: len(folder) - up], *module[1:])
            return [
                file
                for parts, file in self._modules.get(wanted[-1] if wanted else "", [])
                if parts == wanted
            ]
        module = tuple(part for part in module if part not in _OWN_CRATE)
        if not module:
            return []
        return [
            file for parts, file in self._modules.get(module[-1], []) if _one_ends(parts, module)
        ]


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
