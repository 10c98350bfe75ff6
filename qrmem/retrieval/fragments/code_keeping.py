"""The code relation as the store keeps it, file by file, and how it is brought up to date."""

import asyncio
import base64
import hashlib
import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from qrmem.errors import MissingError
from qrmem.retrieval.fragments.code_graph import CodeGraph, Row
from qrmem.retrieval.fragments.source_files import Edge, SourceFile, resolved
from qrmem.text.code import outline
from qrmem.text.code.languages import CODE_KEY

if TYPE_CHECKING:
    from qrmem.graphstore.protocol import GraphStore

VERSION = 1
"""Of what is kept; another number makes everything again."""
CUTOFF = 0.05
_BATCH = 500


@dataclass(frozen=True, slots=True)
class _Kept:
    """A row with what it was made from.

    Attributes:
        made_of: digest of the file's outline and of where its calls lead.
        within: files that a path within the cut-off leads to.
        packed: the row; unpacked only where it is asked for.
    """

    made_of: str
    within: frozenset[str]
    packed: str


@dataclass(slots=True)
class CodeIndex:
    """The source files of one namespace and how their fragments are related.

    What it read it keeps by the texts' digests, so that a second look costs what has changed.
    """

    store: "GraphStore"
    ns: str
    cutoff: float = CUTOFF
    _files: dict[str, tuple[str, SourceFile]] = field(default_factory=dict)
    _rows: dict[str, _Kept] = field(default_factory=dict)
    _seen: str = ""

    async def rows(self) -> Mapping[str, Row]:
        """Return the rows of all source files, up to date.

        Raises:
            MissingError: the extra `code` is not installed.
        """
        await self.refresh()
        return {path: _row(kept.packed) for path, kept in self._rows.items()}

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
            self._rows |= await self._kept_rows(digests.keys() - self._rows.keys())
            if known is None or known.get("state") != state or digests.keys() - self._rows.keys():
                await self._update(digests)
                await self._keep(self._key("state"), {"state": state}, ())
            self._seen = state

    # --- bringing it up to date -----------------------------------------------------------------

    async def _update(self, digests: Mapping[str, str]) -> None:
        files = await self._outlines(digests)
        edges = await asyncio.to_thread(resolved, files)
        made_of = {path: _made_of(digests[path], edges[path]) for path in files}
        gone = self._rows.keys() - files.keys()
        changed = {
            path
            for path, digest in made_of.items()
            if path not in self._rows or self._rows[path].made_of != digest
        }
        if not changed and not gone:
            return
        graph = await asyncio.to_thread(CodeGraph, files, edges, self.cutoff)
        stale = set(changed) | await asyncio.to_thread(graph.within, sorted(changed))
        moved = changed | gone
        stale |= {path for path, kept in self._rows.items() if kept.within & moved}
        for path in gone:
            del self._rows[path]
        for path in sorted(stale & files.keys()):
            row, within = await asyncio.to_thread(graph.row, path)
            self._rows[path] = kept = _Kept(made_of[path], within, _packed(row))
            value = {**asdict(kept), "within": sorted(within)}
            await self._keep(self._key(path), value, await self._segments(path))

    async def _outlines(self, digests: Mapping[str, str]) -> dict[str, SourceFile]:
        """Return all files' outlines: known, kept or made now."""
        wanted = [p for p, digest in digests.items() if self._known(p) != digest]
        for path, value in (await self._values("code:file:", wanted)).items():
            if value["digest"] == digests[path]:
                file = SourceFile.unpacked(path, json.loads(_unzipped(value["packed"])))
                self._files[path] = digests[path], file
        for path in wanted:
            if self._known(path) != digests[path]:
                file = await self._outline(path)
                self._files[path] = digests[path], file
                packed = _zipped(json.dumps(file.packed(), separators=(",", ":")).encode())
                value = {"digest": digests[path], "packed": packed}
                await self._keep(f"code:file:{path}", value, await self._segments(path))
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

    def _key(self, path: str) -> str:
        return f"code:row:{self.cutoff:g}:{path}"

    async def _kept_rows(self, paths: Collection[str]) -> dict[str, _Kept]:
        found = await self._values(self._key(""), sorted(paths))
        return {
            path: _Kept(value["made_of"], frozenset(value["within"]), value["packed"])
            for path, value in found.items()
        }

    async def _values(self, prefix: str, paths: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        found: dict[str, Mapping[str, Any]] = {}
        for at in range(0, len(paths), _BATCH):
            keys = [prefix + path for path in paths[at : at + _BATCH]]
            for kept in await self.store.kept(self.ns, keys):
                found[kept.key.removeprefix(prefix)] = kept.value
        return found

    async def _keep(self, key: str, value: Mapping[str, Any], segments: Sequence[str]) -> None:
        if not self.store.is_read_only:
            await self.store.put_cached(self.ns, key, value, segments=segments)


def _require_scipy() -> None:
    from importlib.util import find_spec

    if find_spec("scipy") is None:
        raise MissingError("relation 'code' needs SciPy: pip install 'qrmem[code]'")


def _made_of(digest: str, edges: Sequence[Edge]) -> str:
    return _digest([digest, [[e.node, e.hops, e.path, e.target] for e in edges]])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]


def _zipped(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 1)).decode()


def _unzipped(packed: str) -> bytes:
    return zlib.decompress(base64.b64decode(packed))


_ARRAYS: Mapping[str, type[np.generic]] = {
    "reach": np.float32,
    "heads": np.int32,
    "files": np.int32,
    "tails": np.int32,
    "weights": np.float32,
}


def _packed(row: Row) -> str:
    """Return a row as text: the names of its files and the sizes of its arrays, then these."""
    arrays = [getattr(row, name) for name in _ARRAYS]
    head = json.dumps([list(row.paths), [array.size for array in arrays]]).encode()
    return _zipped(head + b"\n" + b"".join(array.tobytes() for array in arrays))


def _row(packed: str) -> Row:
    head, _, data = _unzipped(packed).partition(b"\n")
    paths, sizes = json.loads(head)
    arrays: dict[str, Any] = {}
    at = 0
    for (name, kind), size in zip(_ARRAYS.items(), sizes, strict=True):
        arrays[name] = np.frombuffer(data, dtype=kind, count=size, offset=at)
        at += arrays[name].nbytes
    return Row(paths=paths, **arrays)
