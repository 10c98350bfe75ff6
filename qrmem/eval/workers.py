"""Several processes for one run: each takes every n-th item and keeps files of its own.

What an item gives depends on the item alone, so that any number of workers gives the same results.
"""

import asyncio
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from functools import reduce
from pathlib import Path

from qrmem.agents.state import silent
from qrmem.config import Settings
from qrmem.eval.rundir import RunFolder
from qrmem.eval.runner import Ran
from qrmem.eval.running import Means, Prepared, Wanted, prepared, run_prepared
from qrmem.types import Event

POLL = 0.5
"""Seconds between two looks at how far the workers are."""


async def run_by_workers(made: Prepared, folder: RunFolder, means: Means) -> Ran:
    """Run everything that has no result yet by several processes, and wait for all of them."""
    known = sum(not row.error for row in folder.rows().values())
    means.listener(Event("items", {"total": len(made.items) * len(made.systems) - known}))
    # Not forked: threads of the embedder or the database would not survive it.
    context = multiprocessing.get_context("spawn")
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(means.workers, mp_context=context) as pool:
        working = [
            loop.run_in_executor(
                pool,
                _work,
                made.wanted,
                made.settings,
                folder.path,
                (number, means.workers),
                means.concurrency,
            )
            for number in range(means.workers)
        ]
        done = asyncio.gather(*working)
        seen = folder.count()
        while not done.done():
            await asyncio.wait([done], timeout=POLL)
            now = folder.count()
            for _ in range(now - seen):
                means.listener(Event("item", {"error": ""}))
            seen = now
        rans = await done
    return reduce(Ran.plus, rans)


def _work(
    wanted: Wanted, settings: Settings, path: Path, shard: tuple[int, int], concurrency: int
) -> Ran:
    number, of = shard
    made = prepared(wanted, settings)
    means = Means(listener=silent, concurrency=concurrency)
    folder = RunFolder(path, worker=number)
    return asyncio.run(run_prepared(made, folder, means, made.items[number::of]))
