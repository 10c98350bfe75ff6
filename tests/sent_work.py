"""Work that tests send to other processes: functions that these can import."""

import asyncio
import os
import sys
import threading
import time

from qrmem.apart import halves


async def doubled(number: int) -> int:
    """Return twice a number."""
    return 2 * number


async def process_id(_: object) -> int:
    """Return by whom it is done."""
    return os.getpid()


async def printed(text: str) -> str:
    """Return a text and print it on both streams."""
    print(text, flush=True)
    sys.stderr.write(text)
    return text


async def refused_above_two(number: int) -> int:
    """Return a number up to two."""
    if number > 2:
        raise ValueError(number)
    return number


async def ended_above_two(number: int) -> int:
    """Return a number up to two; end the process at a higher one."""
    if number > 2:
        os._exit(1)
    return number


async def slept(seconds: float) -> float:
    """Block for some seconds."""
    time.sleep(seconds)  # noqa: ASYNC251
    await asyncio.sleep(0)
    return seconds


async def may_be_forked(threads: int) -> bool:
    """Whether a process with so many other threads may be forked."""
    done = threading.Event()
    others = [threading.Thread(target=done.wait) for _ in range(threads)]
    for other in others:
        other.start()
    try:
        return halves.is_safe()
    finally:
        done.set()


async def forked_and_slow(seconds: float) -> int:
    """Take so long over the first half; the fork has more to send at once than a pipe holds."""
    here = os.getpid()

    def made(number: int) -> str:
        if os.getpid() == here and number == 0:
            time.sleep(seconds)
        return f"{number:0100}"

    halves.is_safe = lambda: True
    return len(halves.mapped(made, range(halves.LEAST)))
