"""New documents that other processes read whole while the next ones are still being cut."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from qrmem.apart.work import Given, MadeWith, Whole, read
from qrmem.processes import Lost, Processes
from qrmem.types import Job

BATCH = 64
"""Segments that a process is given together, or some more: documents stay whole."""
UNASKED = 64
"""Batches that are read, at most, before anybody asks for what is in them."""


@dataclass(frozen=True, slots=True, eq=False)
class _Batch:
    number: int
    made: asyncio.Task[Mapping[str, Whole]]


class Ahead:
    """Reads documents in the order in which they come, in which they are asked for later."""

    def __init__(self, processes: Processes, made_with: MadeWith) -> None:
        """Take processes; see `Apart`."""
        self._processes = processes
        self._made_with = made_with
        self._room = asyncio.Semaphore(UNASKED)
        self._waiting: dict[str, Job] = {}
        self._sent: dict[str, _Batch] = {}
        self._count = self._asked = 0

    def offer(self, jobs: Iterable[Job]) -> None:
        """Have a document's segments read, in order."""
        self._waiting.update((job.segment.id, job) for job in jobs)
        if len(self._waiting) >= BATCH:
            self._send()

    def has(self, segment_id: str) -> bool:
        """Whether a segment was offered and is not forgotten."""
        return segment_id in self._sent or segment_id in self._waiting

    async def made(self, segment_ids: Sequence[str]) -> dict[str, Whole]:
        """Return what was made of segments that were offered.

        What was lost with a process is left to the caller.
        """
        if not self._waiting.keys().isdisjoint(segment_ids):
            self._send()
        batches = dict.fromkeys(self._sent[id_] for id_ in segment_ids if id_ in self._sent)
        found: dict[str, Whole] = {}
        for batch in batches:
            self._ask(batch)
            try:
                found |= await asyncio.shield(batch.made)
            except Lost:
                continue
        return {id_: found[id_] for id_ in segment_ids if id_ in found}

    def forget(self, segment_ids: Iterable[str]) -> None:
        """Keep no longer what was made of some segments."""
        for segment_id in segment_ids:
            self._sent.pop(segment_id, None)

    async def close(self) -> None:
        """Give up what was not asked for."""
        calls = {batch.made for batch in self._sent.values()}
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)

    def _send(self) -> None:
        jobs, self._waiting = self._waiting, {}
        batch = _Batch(self._count, asyncio.create_task(self._read(list(jobs.values()))))
        self._count += 1
        self._sent.update(dict.fromkeys(jobs, batch))

    async def _read(self, jobs: Sequence[Job]) -> Mapping[str, Whole]:
        await self._room.acquire()
        return await self._processes.call(read, Given(jobs, self._made_with))

    def _ask(self, batch: _Batch) -> None:
        """Make room for as many others: those that came before are not asked for any more."""
        while self._asked <= batch.number:
            self._asked += 1
            self._room.release()
