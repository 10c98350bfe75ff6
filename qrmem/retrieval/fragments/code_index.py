"""The code relation of one namespace: outlines are kept file by file, strengths as a whole."""

import asyncio
import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from qrmem.errors import MissingError, install
from qrmem.retrieval.fragments.code_graph import CodeGraph, Strengths
from qrmem.retrieval.fragments.source_files import SourceFile, resolved
from qrmem.text.code import outline
from qrmem.text.code.languages import CODE_KEY

if TYPE_CHECKING:
    from qrmem.graphstore.protocol import GraphStore

VERSION = 8
"""Of what is kept; another number makes everything again."""


@dataclass(slots=True)
class CodeIndex:
    """The source files of one namespace and how their fragments are related.

    The strengths stay in memory until a file changes.
    """

    store: "GraphStore"
    ns: str
    _strengths: dict[float, tuple[str, Strengths]] = field(default_factory=dict)

    async def strengths(self, cutoff: float) -> Strengths:
        """Return how strongly the fragments of all source files are related.

        They are computed when a question first needs them after a change, and kept in the store.

        Raises:
            MissingError: the extra `code` is not installed.
        """
        digests = await self._digests()
        state = _digest([VERSION, cutoff, sorted(digests.items())])
        known = self._strengths.get(cutoff)
        if known is None or known[0] != state:
            found = await self._kept_strengths(cutoff, state)
            if found is None:
                found = await self._computed(cutoff, digests, state)
            self._strengths[cutoff] = known = state, found
        return known[1]

    async def _kept_strengths(self, cutoff: float, state: str) -> Strengths | None:
        for kept in await self.store.cached(self.ns, "code", [_key(cutoff)]):
            if kept.value.get("state") == state:
                return Strengths.unpacked(kept.value["packed"])
        return None

    async def _computed(self, cutoff: float, digests: Mapping[str, str], state: str) -> Strengths:
        if find_spec("scipy") is None:
            raise MissingError(f"relation 'code' needs SciPy: {install('code')}")
        files = await self._outlines(digests)
        found = await asyncio.to_thread(_related, files, cutoff)
        # The strengths name files: they go as soon as one of these is deleted.
        firsts = [segment for path in files for segment in (await self._segments(path))[:1]]
        await self._keep(_key(cutoff), {"state": state, "packed": found.packed()}, firsts)
        return found

    async def _outlines(self, digests: Mapping[str, str]) -> dict[str, SourceFile]:
        """Return all files' outlines: kept, or made now."""
        keys = {path: f"code:file:{path}" for path in sorted(digests)}
        kept = {
            one.key: one.value
            for one in await self.store.cached(self.ns, "code", list(keys.values()))
        }
        files = {}
        for path, key in keys.items():
            value = kept.get(key, {})
            if value.get("digest") == digests[path]:
                files[path] = SourceFile.unpacked(path, value["packed"])
            else:
                files[path] = file = await self._outline(path)
                made = {"digest": digests[path], "packed": file.packed()}
                await self._keep(key, made, await self._segments(path))
        return files

    async def _outline(self, path: str) -> SourceFile:
        document = await self.store.document(self.ns, path)
        assert document is not None
        spans = [(s.start, s.end) for s in await self.store.segments(self.ns, documents=[path])]
        language = str(document.metadata[CODE_KEY])

        def made() -> SourceFile:
            return SourceFile.of(path, document.text, outline(document.text, language), spans)

        return await asyncio.to_thread(made)

    # --- the store --------------------------------------------------------------------------------

    async def _digests(self) -> dict[str, str]:
        """Return what each source file's text and fragments are, by path."""
        return {
            info.id: f"{VERSION}:{info.segments}:{info.digest}"
            for info in await self.store.documents(self.ns)
            if CODE_KEY in info.metadata
        }

    async def _segments(self, path: str) -> list[str]:
        return [segment.id for segment in await self.store.segments(self.ns, documents=[path])]

    async def _keep(self, key: str, value: Mapping[str, Any], segments: Collection[str]) -> None:
        if not self.store.is_read_only:
            await self.store.put_cached(self.ns, "code", key, value, segments=list(segments))


def _related(files: Mapping[str, SourceFile], cutoff: float) -> Strengths:
    if not files:
        return Strengths.none()
    return CodeGraph(files, resolved(files), cutoff).strengths()


def _key(cutoff: float) -> str:
    return f"code:strengths:{cutoff:g}"


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]
