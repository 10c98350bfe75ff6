"""A memory with every kind of content, in any store, and ways to damage its archive."""

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from contract.reference import ReferenceStore
from contract.suite.runs import TRAIL
from fakes import HashEmbedder, ScriptedReasoner, build_of

from qrmem.agents import Build, build_documents
from qrmem.graph.merging import refresh_names
from qrmem.graph.segmenting import cut
from qrmem.graphstore import GraphStore, NamespaceInfo
from qrmem.io.archive import export_archive
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import (
    CallRecord,
    ChatReply,
    Contribution,
    Document,
    LedgerRow,
    Mention,
    MergeDecision,
    Part,
    Statement,
)

INFO = NamespaceInfo("", "builtin-v1", 16, "hash", 8, single=("LIVES_IN", "WORKS_FOR"))
TEXTS = {
    "a/ß.txt": "Ann met Bob at home. Bob saw Ann again there.\n\nAnn wrote to Cid. Cid met Bob. "
    "Bob met Ann at sea in the last week of that year. Ann met Bob on the pier once more.",
    "b": "Dot sailed with Ann to Oslo. “Bob,” said Dot\u2028🙂 \u0085 東京へ。 Ann met Bob again.",
    "c": "Bob alone. " * 8,
}


async def fill(store: GraphStore, ns: str, *, order: int = 1) -> None:
    """Fill a namespace; what it holds does not depend on the order in which documents come."""
    await store.create_namespace(ns, INFO)
    for id_ in sorted(TEXTS)[::order]:
        metadata: dict[str, str | int | float | bool] = {"year": 1.0, "page": 1, "kept": True}
        if order < 0:
            metadata = dict(reversed(metadata.items()))
        document = Document(TEXTS[id_], f"Title of {id_}", id_, metadata, (Part(0, "§ 1"),))
        await store.put_documents(ns, [(document, cut(id_, document, BuiltinTokenizer(), 16))])
        await build_documents(_build(store, ns), [id_])
    await store.override_merge(ns, MergeDecision("Dot", "Cid", same=True))
    await refresh_names(store, ns)
    first = (await store.segments(ns, documents=["b"]))[0]
    await store.record(
        ns, [(LedgerRow(first.id, "partial", "half of it", "scripted"), _oriented(first.id))]
    )
    document = Document("Nobody has read this.", id="unread")
    await store.put_documents(ns, [(document, cut("unread", document, BuiltinTokenizer(), 16))])


async def fill_runs(store: GraphStore, ns: str) -> None:
    """Add what runs leave behind."""
    segment = (await store.segments(ns, documents=["b"]))[0]
    await store.put_trail(ns, TRAIL)
    await store.record(
        ns,
        (),
        [CallRecord("r", "judge", "online", "p", "m", created=str(n), cost=n / 3) for n in (2, 1)],
    )
    await store.put_cache_entry(
        ns, "reply", "reply", {"text": "x\ud800", "n": [1, None]}, segments=[segment.id]
    )
    await store.put_cache_entry(ns, "reply", "free", {})
    await store.put_cache_entry(
        ns, "reply", "a" * 64, asdict(ChatReply("yes", 5, 1)), segments=[segment.id]
    )
    await store.put_cache_entry(ns, "code", "code:file:x", {"packed": "made anew"})
    await store.put_vectors(ns, "relation", ["Ann\0Bob"], np.full((1, 8), 1 / 3, np.float32))


def _build(store: GraphStore, ns: str) -> Build:
    embedder = HashEmbedder(8, window=6)
    return build_of(store, ScriptedReasoner(), ns=ns, embedder=embedder, mode="paper")


def export_whole(path: Path) -> Path:
    """Write the archive of such a memory, with what runs leave behind; return its path."""

    async def export() -> None:
        store = ReferenceStore()
        await fill(store, "n")
        await fill_runs(store, "n")
        await export_archive(store, "n", path, runs=True)

    asyncio.run(export())
    return path


def _oriented(segment_id: str) -> Contribution:
    return Contribution(
        segment_id,
        "oriented",
        mentions=(Mention("Dot", "PERSON", ("Dot",)),),
        statements=(Statement("Dot", "Ann", "half of a pair: \ud83d", "Who sailed?"),),
        asked=("Who sailed?",),
    )


def rewritten(path: Path, change: Callable[[list[Any]], None]) -> Path:
    """Return an archive with other lines and a checksum that fits them: what a forger makes."""
    lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-2]]
    change(lines)
    return sealed(path.with_name("forged.qrmem"), [json.dumps(line).encode() for line in lines])


def sealed(path: Path, lines: list[bytes]) -> Path:
    """Write lines as an archive."""
    body = b"".join(line + b"\n" for line in lines)
    end = {"end": {"lines": len(lines), "sha256": hashlib.sha256(body).hexdigest()}}
    path.write_bytes(body + json.dumps(end).encode() + b"\n")
    return path


def read(path: Path) -> bytes:
    """Return what is in a file."""
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    """Write a file."""
    path.write_bytes(content)


def names_in(folder: Path) -> list[str]:
    """Return the names of what is in a folder."""
    return sorted(file.name for file in folder.iterdir())
