"""The code relation as the store keeps it, file by file, and how it is brought up to date."""

import asyncio
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from qrmem.errors import MissingError
from qrmem.retrieval.fragments.change import Change, Origin, complete, seen
from qrmem.retrieval.fragments.code_graph import CodeGraph
from qrmem.retrieval.fragments.row import Row
from qrmem.retrieval.fragments.source_files import Edge, SourceFile, labels, resolved
from qrmem.retrieval.fragments.transit import Transits
from qrmem.text.code import outline
from qrmem.text.code.languages import CODE_KEY

if TYPE_CHECKING:
    from qrmem.graphstore.protocol import GraphStore, Kept

VERSION = 5
"""Of what is kept; another number makes everything again."""
CUTOFF = 0.05
_BATCH = 500


@dataclass(slots=True)
class CodeIndex:
    """The source files of one namespace and how their fragments are related.

    What it read it keeps by the texts' digests, so that a second look costs what has changed.
    """

    store: "GraphStore"
    ns: str
    cutoff: float = CUTOFF
    _files: dict[str, tuple[str, SourceFile]] = field(default_factory=dict)
    _origins: dict[str, Origin] = field(default_factory=dict)
    _packed: dict[str, str] = field(default_factory=dict)
    _seen: str = ""

    async def rows(self) -> Mapping[str, Row]:
        """Return the rows of all source files, up to date.

        Raises:
            MissingError: the extra `code` is not installed.
        """
        await self.refresh()
        for path, kept in (await self._values("row", self._origins.keys() - self._packed)).items():
            self._packed[path] = kept.value["packed"]
        rows = {path: Row.unpacked(packed) for path, packed in self._packed.items()}
        return complete(rows, self._origins)

    async def refresh(self) -> None:
        """Bring the rows up to date; what had to be made is kept.

        Raises:
            MissingError: the extra `code` is not installed.
        """
        digests = await self._digests()
        state = _digest([VERSION, self.cutoff, sorted(digests.items())])
        if state != self._seen:
            _require_scipy()
            known = await self.store.cached(self.ns, self._key("state"))
            self._origins |= await self._kept_origins(digests.keys() - self._origins.keys())
            missing = digests.keys() - self._origins.keys()
            if known is None or known.get("state") != state or missing:
                await self._update(digests)
                await self._keep(self._key("state"), {"state": state}, ())
            self._seen = state

    # --- bringing it up to date -----------------------------------------------------------------

    async def _update(self, digests: Mapping[str, str]) -> None:
        files = await self._outlines(digests)
        made = await asyncio.to_thread(_Made.of, files, digests, self.cutoff)
        compare = partial(Change.between, self._origins, made.of_all, made.transits)
        change = await asyncio.to_thread(compare)
        for path in change.gone:
            self._origins.pop(path, None)
            self._packed.pop(path, None)
        for path in sorted(change.stale):
            await self._keep_row(path, *await asyncio.to_thread(made.row, path))

    async def _keep_row(self, path: str, packed: str, origin: Origin) -> None:
        """Keep a row, and apart from it what it was made from: after a change, that alone is read.

        Both hold names of files and numbers, no words: it is enough that they go with one segment.
        """
        first = (await self._segments(path))[:1]
        await self._keep(self._key("row", path), {"packed": packed}, first)
        value = {"version": VERSION, "made_of": origin.made_of, "within": origin.within}
        await self._keep(self._key("origin", path), value, first)
        self._packed[path], self._origins[path] = packed, origin

    async def _outlines(self, digests: Mapping[str, str]) -> dict[str, SourceFile]:
        """Return all files' outlines: known, kept or made now."""
        wanted = [p for p, digest in digests.items() if self._known(p) != digest]
        found = await self._values("file", wanted)
        for path, kept in found.items():
            if kept.value["digest"] == digests[path]:
                file = SourceFile.unpacked(path, kept.value["packed"])
                self._files[path] = digests[path], file
        for path in wanted:
            if self._known(path) != digests[path]:
                file = await self._outline(path)
                self._files[path] = digests[path], file
                value = {"digest": digests[path], "packed": file.packed()}
                await self._keep(self._key("file", path), value, await self._segments(path))
        return {path: self._files[path][1] for path in sorted(digests)}

    async def _outline(self, path: str) -> SourceFile:
        document = await self.store.document(self.ns, path)
        assert document is not None
        spans = [(s.start, s.end) for s in await self.store.segments_of(self.ns, path)]
        language = str(document.metadata[CODE_KEY])

        def made() -> SourceFile:
            return SourceFile.of(path, document.text, outline(document.text, language), spans)

        return await asyncio.to_thread(made)

    def _known(self, path: str) -> str:
        return self._files[path][0] if path in self._files else ""

    # --- the store --------------------------------------------------------------------------------

    async def _digests(self) -> dict[str, str]:
        """Return what each source file's text and fragments are, by path."""
        texts = await self.store.document_texts(self.ns)
        return {
            info.id: f"{VERSION}:{info.segments}:{texts[info.id]}"
            for info in await self.store.documents(self.ns)
            if CODE_KEY in info.metadata and info.id in texts
        }

    async def _segments(self, path: str) -> list[str]:
        return [segment.id for segment in await self.store.segments_of(self.ns, path)]

    def _key(self, kind: str, path: str = "") -> str:
        return f"code:{kind}:{path}" if kind == "file" else f"code:{kind}:{self.cutoff:g}:{path}"

    async def _kept_origins(self, paths: Collection[str]) -> dict[str, Origin]:
        found = await self._values("origin", paths)
        return {
            path: Origin(kept.value["made_of"], kept.value["within"])
            for path, kept in found.items()
            if kept.value["version"] == VERSION
        }

    async def _values(self, kind: str, paths: Collection[str]) -> "dict[str, Kept]":
        found: dict[str, Kept] = {}
        prefix, ordered = self._key(kind), sorted(paths)
        for at in range(0, len(ordered), _BATCH):
            keys = [prefix + path for path in ordered[at : at + _BATCH]]
            for kept in await self.store.kept(self.ns, keys):
                found[kept.key.removeprefix(prefix)] = kept
        return found

    async def _keep(self, key: str, value: Mapping[str, Any], segments: Sequence[str]) -> None:
        if not self.store.is_read_only:
            await self.store.put_cached(self.ns, key, value, segments=segments)


@dataclass(frozen=True, slots=True)
class _Made:
    """What rows are made from.

    Attributes:
        of_all: digest of each file's outline and of where its calls lead.
    """

    graph: CodeGraph
    transits: Transits
    of_all: Mapping[str, str]

    @classmethod
    def of(
        cls, files: Mapping[str, SourceFile], digests: Mapping[str, str], cutoff: float
    ) -> "_Made":
        """Join a repository's files."""
        edges, named = resolved(files), labels(files)
        of_all = {path: _made_of(digests[path], edges[path], named) for path in files}
        graph = CodeGraph(files, edges, cutoff)
        return cls(graph, Transits(graph, edges, named), of_all)

    def row(self, path: str) -> tuple[str, Origin]:
        """Return a file's row, packed, and what it was made from."""
        row, distances = self.graph.row(path)
        ways = self.transits.seen_from(distances)
        near = sorted(self.graph.files_at(np.flatnonzero(np.isfinite(distances))))
        within = {other: seen(ways.get(other, ""), self.of_all[other]) for other in near}
        return row.packed(), Origin(self.of_all[path], within)


def _require_scipy() -> None:
    from importlib.util import find_spec

    if find_spec("scipy") is None:
        raise MissingError("relation 'code' needs SciPy: pip install 'qrmem[code]'")


def _made_of(digest: str, edges: Sequence[Edge], named: Mapping[tuple[str, int], str]) -> str:
    return _digest([digest, [[e.node, e.hops, e.path, named[e.path, e.target]] for e in edges]])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]
