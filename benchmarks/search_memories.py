"""The sets of `multihop` as memories that rules have read; a folder keeps them between runs."""

import contextlib
import hashlib
import sqlite3
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import qrmem
from benchmarks.multihop import Asked, Corpus
from qrmem.config import Settings
from qrmem.graphstore import GraphStore, open_store
from qrmem.graphstore.reads import merged_segments
from qrmem.llm.embedders import open_embedder
from qrmem.retrieval import Searcher, embed_segments
from qrmem.retrieval.searcher import Findings
from qrmem.types import Embedder

_BATCH = 256


class KeptEmbedder:
    """An embedder that keeps every vector in a file, so that a second run costs nothing.

    The encoder is opened when a text comes that the file doesn't hold.
    """

    def __init__(self, folder: Path, name: str = "local", dimension: int = 384) -> None:
        self.name = name
        self.dimension = dimension
        self._kept = sqlite3.connect(folder / f"vectors-{name.partition(':')[0]}.sqlite")
        self._kept.execute(
            "create table if not exists vectors (text text primary key, vector blob)"
        )
        self._inner: Embedder | None = None

    def _opened(self) -> Embedder:
        if self._inner is None:
            self._inner = open_embedder(self.name, Settings())
            assert self._inner is not None
        return self._inner

    def windows(self, text: str) -> Sequence[str]:
        """Cut a text into pieces that the encoder reads whole; one that is kept is one."""
        return [text] if self._find(text) is not None else self._opened().windows(text)

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> NDArray[np.float32]:
        """Return stored vectors, and compute the others."""
        missing = [text for text in dict.fromkeys(texts) if self._find(text) is None]
        for start in range(0, len(missing), _BATCH):
            batch = missing[start : start + _BATCH]
            made = await self._opened().embed(batch, kind=kind)
            rows = [(_key(text), row.tobytes()) for text, row in zip(batch, made, strict=True)]
            with self._kept:
                self._kept.executemany("insert or replace into vectors values (?, ?)", rows)
        found = [self._find(text) for text in texts]
        return np.frombuffer(b"".join(filter(None, found)), dtype=np.float32).reshape(
            len(texts), -1
        )

    def _find(self, text: str) -> bytes | None:
        row = self._kept.execute("select vector from vectors where text = ?", (_key(text),))
        found: tuple[bytes] | None = row.fetchone()
        return found[0] if found else None


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Built:
    """A corpus as a memory.

    Attributes:
        embedder: what it was embedded by, or `None`.
    """

    corpus: Corpus
    store: GraphStore
    embedder: KeptEmbedder | None

    def searcher(self) -> Searcher:
        """Return a searcher over it."""
        return Searcher(self.store, self.corpus.name, self.embedder)

    async def recall(self, asked: Sequence[Asked], at: Sequence[int]) -> list[float]:
        """Return the share of gold passages among the first k, in per cent, for each k of `at`."""
        searcher = self.searcher()
        found = np.zeros((len(asked), len(at)))
        for number, question in enumerate(asked):
            hits = await searcher.search(question.text, k=2 * max(at))
            passages = list(dict.fromkeys(passage(hit.document_id) for hit in hits))
            for column, k in enumerate(at):
                found[number, column] = len(question.gold & set(passages[:k])) / len(question.gold)
        return [100 * float(share) for share in found.mean(axis=0)]


def document_id(place: int) -> str:
    """Return the id of a passage's document."""
    return f"p{place:06}"


def passage(document: str) -> int:
    """Return the place of a document's passage in its corpus."""
    return int(document[1:])


@contextlib.asynccontextmanager
async def built(
    corpus: Corpus,
    folder: Path,
    *,
    embedder: str,
    memory: str = "",
    reader: Settings | None = None,
) -> AsyncIterator[Built]:
    """Open the memory of a corpus; read and embed what is missing first.

    Args:
        embedder: `local`, `light:FOLDER` or another; `none`: without one.
        folder: keeps vectors, and memories where `memory` is "".
        memory: a store's URI; each corpus is a namespace of its own.
        reader: names the chat model that reads it; else built-in rules do.
    """
    kept = f"{corpus.name}{'-by-model' if reader else ''}.db"
    address = memory or str(folder / kept)
    store = await open_store(address, Settings.from_env())
    try:
        info = await store.namespace(corpus.name)
        if info is None or info.embedder == "none":  # embedded only once it is read completely
            await _read(corpus, address, reader or Settings.from_env())
        kept_vectors = KeptEmbedder(folder, embedder) if embedder != "none" else None
        if kept_vectors is not None:
            await embed(store, corpus.name, kept_vectors)
        yield Built(corpus, store, kept_vectors)
    finally:
        await store.close()


async def _read(corpus: Corpus, address: str, reader: Settings) -> None:
    documents = [
        {"id": document_id(place), "title": title, "text": text}
        for place, (title, text) in enumerate(corpus.passages)
    ]
    settings = reader.with_(namespace=corpus.name, embedder="none")
    async with qrmem.open(address, settings=settings) as memory:
        await memory.add(documents)


async def embed(store: GraphStore, ns: str, embedder: KeptEmbedder) -> None:
    """Embed segments without vectors; an embedder stores its vectors beside the memories."""
    info = await store.namespace(ns)
    if info is None or info.embedder != embedder.name:
        await store.set_embedder(ns, embedder.name, embedder.dimension)
    done = set(await store.owners(ns, "segment"))
    titles = {found.id: found.title for found in await store.documents(ns)}
    missing = [name for name in await merged_segments(store, ns) if name not in done]
    for start in range(0, len(missing), 512):
        segments = await store.segments(ns, missing[start : start + 512])
        wanted = [titles[segment.document_id] for segment in segments]
        owners, matrix = await embed_segments(embedder, segments, wanted)
        await store.put_vectors(ns, "segment", owners, matrix)


async def findings(searcher: Searcher, question: str) -> Findings:
    """Return the findings of a search over a memory that is not empty."""
    found = await searcher.findings(question)
    assert found is not None
    return found
