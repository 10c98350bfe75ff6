"""Tasks of the workers in the tests of executors; the workers import this module."""

import asyncio
import os
import signal
from collections.abc import Sequence
from pathlib import Path

from qrmem.agents.executor import HowRead, read_jobs
from qrmem.types import Job, JobResult, Phase

FLAG = "QRMEM_TEST_FLAG"
POISON = "Zorblax"


def double(number: int) -> int:
    return 2 * number


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


async def hang(number: int) -> int:
    await asyncio.sleep(3600)
    return number


def refuse(number: int) -> int:
    raise ValueError(f"not {number}")


async def read_but_die_once(how: HowRead, phase: Phase, jobs: Sequence[Job]) -> list[JobResult]:
    try:
        os.close(os.open(os.environ[FLAG], os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return await read_jobs(how, phase, jobs)
    os.kill(os.getpid(), signal.SIGKILL)
    return []


async def read_but_die_of_poison(
    how: HowRead, phase: Phase, jobs: Sequence[Job]
) -> list[JobResult]:
    if any(POISON in job.segment.text for job in jobs):
        os.kill(os.getpid(), signal.SIGKILL)
    return await read_jobs(how, phase, jobs)


async def read_slowly(how: HowRead, phase: Phase, jobs: Sequence[Job]) -> list[JobResult]:
    if len(jobs) > 1:  # what is done again is done alone
        await asyncio.to_thread(Path(f"{os.environ[FLAG]}-{os.getpid()}").touch)
        await asyncio.sleep(15.0)
    return await read_jobs(how, phase, jobs)
