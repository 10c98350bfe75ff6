"""FragRel's relations: the matrix of 10,000 fragments, what stands for it beyond, the code graph.

    python -m benchmarks.fragrel                       # fragments of text
    python -m benchmarks.fragrel --tree FOLDER         # and the code graph of a source tree

Vectors are drawn around topics, as an encoder's lie. The code graph is that of the first `--files`
Python files below a folder, in a SQLite memory: outlines, calls, graph and all rows; then one file
is changed, by a function that calls nothing and by one that calls another file's, and a new
process's index brings the memory up to date.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from qrmem.config import Settings
from qrmem.errors import QrmemError
from qrmem.graph.source_code import cut_code
from qrmem.graphstore import open_store
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.retrieval.fragments.code_keeping import CodeIndex
from qrmem.retrieval.fragments.relations import Blend, Links, Relation, Semantic, Structure
from qrmem.retrieval.fragments.scoring import best, environment, relation_aware
from qrmem.sources import PassedOver, Refused, documents
from qrmem.text.code import outline
from qrmem.text.tokens import BuiltinTokenizer

DIMENSION, TOPICS = 384, 100
Vector = NDArray[np.float64]


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fragments", type=int, nargs="+", default=[10_000, 20_000])
    parser.add_argument("--tree", type=Path, help="a folder of Python files")
    parser.add_argument("--files", type=int, default=2_000)
    arguments = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for count in arguments.fragments:
        matrix(count)
    if arguments.tree:
        asyncio.run(code(arguments.tree, arguments.files))


# --- text ----------------------------------------------------------------------------------------


def matrix(n: int) -> None:
    """Time the exact relation, and say how near the substitutes come to it."""
    vectors, query = drawn(n)
    alone = (vectors @ query).astype(np.float64)
    structure = Structure(np.arange(n) // 200, np.arange(n) % 200, 0.3)
    exact = timed("structure and semantic, exact, in blocks", structure, Semantic(vectors), alone)
    thin = Semantic(vectors, is_clipped=False)
    found = timed("thin product, negative cosines left in", structure, thin, alone)
    compared(alone, exact, found)
    for k in (32, 128):
        links = strongest(Semantic(vectors), k)
        found = timed(f"band and top {k} of each row", structure, links, alone)
        compared(alone, exact, found)


def drawn(n: int) -> "tuple[NDArray[np.float32], NDArray[np.float32]]":
    """Return unit vectors around topics that share a direction, and one more as the query."""
    random = np.random.default_rng(0)
    common, topics = random.standard_normal(DIMENSION), random.standard_normal((TOPICS, DIMENSION))
    of = topics[random.integers(0, TOPICS, n + 1)]
    made = 0.35 * common + 0.5 * of + random.standard_normal((n + 1, DIMENSION))
    unit = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)
    return unit[:-1], unit[-1]


def strongest(relation: Relation, k: int, block: int = 1_024) -> Links:
    """Return the k strongest links of every fragment: what is usually kept of a large relation."""
    tails, weights = [], []
    for start in range(0, relation.size, block):
        rows = relation.rows(start, min(start + block, relation.size))
        at = np.argpartition(-rows, k - 1, axis=1)[:, :k]
        tails.append(at)
        weights.append(np.take_along_axis(rows, at, axis=1))
    heads = np.repeat(np.arange(relation.size), k)
    return Links(
        relation.size, heads, np.concatenate(tails).ravel(), np.concatenate(weights).ravel()
    )


def timed(name: str, structure: Relation, semantic: Relation, alone: Vector) -> Vector:
    """Return the environment scores of both relations together; print how long they took."""
    began = time.perf_counter()
    found = environment(Blend([structure, semantic]), alone)
    print(f"{name}: {alone.size} fragments in {time.perf_counter() - began:.2f} s")
    return found


def compared(alone: Vector, exact: Vector, found: Vector) -> None:
    """Print how alike two rankings are: by environment alone, and what is picked in the end."""
    one, other = (np.argsort(np.argsort(values)) for values in (exact, found))
    picks = [set(best(relation_aware(alone, around, 0.5), 100)) for around in (exact, found)]
    print(
        f"  rank agreement with exact: {np.corrcoef(one, other)[0, 1]:.4f} over all by environment;"
        f" {len(picks[0] & picks[1])} of the first 100 by score"
    )


# --- code ----------------------------------------------------------------------------------------


async def code(tree: Path, count: int) -> None:
    """Time the code graph from nothing, and after one changed file."""
    with tempfile.TemporaryDirectory() as folder:
        store = await open_store(str(Path(folder) / "code.db"), Settings())
        await store.create_namespace("code", NamespaceInfo("code", "builtin-v1", 600))
        paths = await put(store, tree, count)
        index = CodeIndex(store, "code")
        with watch("code graph from nothing"):
            await index.refresh()
        with watch("its rows, unpacked for a question"):
            rows = await index.rows()
        links = sum(row.weights.size for row in rows.values())
        fragments = sum(row.reach.size for row in rows.values())
        print(f"  {len(rows)} files, {fragments} fragments, {links} links")
        await changed(store, paths[len(paths) // 2])
        with watch("after one changed file, same process"):
            await index.refresh()
        await changed(store, paths[len(paths) // 3])
        with watch("after one changed file, another process"):
            await CodeIndex(store, "code").refresh()
        await changed(store, paths[len(paths) // 4], await defined(store, paths[len(paths) // 5]))
        with watch("after one more call to another file, another process"):
            await CodeIndex(store, "code").refresh()
        await store.close()


@contextmanager
def watch(name: str) -> Iterator[None]:
    """Print how long something took, and how much of that was work of this process."""
    began, worked = time.perf_counter(), time.process_time()
    yield
    took, work = time.perf_counter() - began, time.process_time() - worked
    print(f"{name}: {took:.2f} s ({work:.2f} s of processor)")


async def put(store: GraphStore, tree: Path, count: int) -> list[str]:
    """Put source files into a memory; return their ids."""
    paths: list[str] = []
    async for found in documents(str(tree), "*.py"):
        if isinstance(found, Refused | PassedOver) or len(paths) >= count:
            continue
        try:
            segments = cut_code(
                found.id or "",
                found,
                outline(found.text, "python"),
                "lines",
                BuiltinTokenizer(),
                600,
            )
            await store.put_document("code", found, segments)
        except QrmemError as exc:
            print(f"{found.id}: {exc}")
            continue
        paths.append(found.id or "")
    return paths


async def changed(store: GraphStore, path: str, called: str = "") -> None:
    """Add a function to a file, and to that a call."""
    document = await store.document("code", path)
    assert document is not None
    body = f"{called}()" if called else "1"
    new = replace(document, text=document.text + f"\n\ndef one_more():\n    return {body}\n")
    tree = outline(new.text, "python")
    segments = cut_code(path, new, tree, "lines", BuiltinTokenizer(), 600)
    await store.put_document("code", new, segments)


async def defined(store: GraphStore, path: str) -> str:
    """Return the name of a file's first definition."""
    document = await store.document("code", path)
    assert document is not None
    return next(found.name for found in outline(document.text, "python").definitions)


if __name__ == "__main__":
    main()
