"""Tasks that tests of the SQLite file run in other processes: `start(TASK, PATH, …)`."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
from contract.suite.samples import INFO, change, series, text

from qrmem.config import Settings
from qrmem.errors import QrmemError, StoreConflict
from qrmem.graphstore import GraphStore, open_store
from qrmem.graphstore.sqlite import vectors
from qrmem.types import Contribution, LedgerRow


async def add(store: GraphStore, writer: str) -> None:
    """Add documents, and compute a change again whenever another writer was first."""
    await store.create_namespace("n", INFO)
    for document, segments in series(writer):
        await store.put_documents("n", [(document, segments)])
        rows = [(LedgerRow(s.id, "ok"), Contribution(s.id, "extraction")) for s in segments]
        await store.record("n", rows)
        while True:
            info = await store.namespace("n")
            assert info is not None
            known = [row.key for row in await store.names("n")]
            try:
                await store.apply("n", info.revision, change(segments, known))
                break
            except StoreConflict:
                await asyncio.sleep(0)


async def record_for_ever(store: GraphStore, _: str) -> None:
    """Record segment after segment, and say so after each commit."""
    document, segments = text("d", *[f"piece {n} " for n in range(2_000)])
    await store.create_namespace("n", INFO)
    await store.put_documents("n", [(document, segments)])
    for segment in segments:
        await store.record(
            "n", [(LedgerRow(segment.id, "ok"), Contribution(segment.id, "extraction"))]
        )
        print(segment.id, flush=True)


async def look(store: GraphStore, _: str) -> None:
    """Read, try to write, and say what came of it."""
    names = [row.key for row in await store.names("n")]
    try:
        await store.delete_documents("n", "d")
        outcome = "written"
    except QrmemError as exc:
        outcome = type(exc).__name__
    print(store.is_read_only, ",".join(names), outcome)


async def nearest(store: GraphStore, _: str) -> None:
    """Print the segment that is nearest to each number read, as `test_vector_copies` has them."""
    vectors.LEAST = 10
    while line := await asyncio.to_thread(sys.stdin.readline):
        angle = int(line) / 30
        row = np.array([np.cos(angle), np.sin(angle), 0.0], dtype=np.float32)
        print(*await store.nearest("n", row, 1), flush=True)


def start(task: str, path: Path, argument: str = "", user: int = 0) -> subprocess.Popen[str]:
    """Start a process that does one of the tasks on a file."""
    command = [sys.executable, __file__, task, str(path), argument, str(user)]
    root, tests = Path(__file__).parents[2], Path(__file__).parents[1]
    found_in = f"{root}{os.pathsep}{tests}"
    environ = {**os.environ, "PYTHONPATH": found_in, "PYTHONDONTWRITEBYTECODE": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environ, cwd=root)


async def main(task: str, path: str, argument: str) -> None:
    tasks: dict[str, Callable[[GraphStore, str], Awaitable[None]]] = {
        "add": add,
        "record": record_for_ever,
        "look": look,
        "nearest": nearest,
    }
    store = await open_store(path, Settings(), create=task != "look")
    await tasks[task](store, argument)
    await store.close()


if __name__ == "__main__":
    import qrmem.graphstore.sqlite  # noqa: F401 (the other user may not read the interpreter's files)

    if user := int(sys.argv[4]):
        os.setuid(user)
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3]))
