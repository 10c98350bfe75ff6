"""What the model layer adds to a chat model of fixed latency.

Run: `python benchmarks/model_layer.py [--latency 1.0] [--concurrency 1 8 32]`. For each concurrency
it prints wall time over calls x latency / concurrency, and processor time per call. The model is
the test server in a process of its own; its latency is what the ratio is measured against.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel

from qrmem.config import Settings
from qrmem.models.chat import open_chat
from qrmem.models.meter import Meter
from qrmem.models.structured import ask
from qrmem.models.tokenizers import open_tokenizer
from qrmem.ports import ChatRequest, Message

ROOT = Path(__file__).resolve().parent.parent
SYSTEM = 'Name what the passage names.\nReply with JSON only: {"entities": ["…"]}'
SENTENCE = "Ahab met Captain Bildad on the quay at Nantucket and spoke of the white whale. "


class Names(BaseModel):
    """The reply."""

    entities: list[str]


@contextmanager
def server(latency: float) -> Iterator[str]:
    """Run the test server; yields its base URL."""
    command = [sys.executable, "-m", "servers.openai_server", "--latency", str(latency)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def request(n: int) -> ChatRequest:
    """Return a request of the size of a segment's, each another one."""
    text = f"Passage:\n<text>\n{n}. {SENTENCE * 30}\n</text>"
    return ChatRequest((Message("system", SYSTEM), Message("user", text)), stage="read")


async def measure(url: str, latency: float, concurrency: int, rounds: int) -> None:
    """Print ratio, processor time and memory for one concurrency."""
    settings = Settings(model="test", base_url=url, concurrency=concurrency)
    async with open_chat(settings) as chat:
        tokenizer = open_tokenizer("builtin")
        meter = Meter(chat, run="r", phase="construction", tokenizer=tokenizer)
        await ask(meter, request(0), Names)  # imports and the first connection
        calls = rounds * concurrency
        began, used = time.perf_counter(), time.process_time()
        await asyncio.gather(*(ask(meter, request(n), Names) for n in range(1, calls + 1)))
        wall, busy = time.perf_counter() - began, time.process_time() - used
    ratio = wall / (calls * latency / concurrency)
    print(
        f"concurrency {concurrency:>2}: {calls} calls, wall / (calls x latency / concurrency) = "
        f"{ratio:.3f}, {1000 * busy / calls:.2f} ms of processor a call"
    )


async def grown(url: str, calls: int) -> int:
    """Return the bytes that stay allocated after so many calls, records left out."""
    settings = Settings(model="test", base_url=url, concurrency=8)
    async with open_chat(settings) as chat:
        await asyncio.gather(*(ask(chat, request(n), Names) for n in range(16)))
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for start in range(0, calls, 100):
            await asyncio.gather(*(ask(chat, request(start + n), Names) for n in range(100)))
        after = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    return after - before


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    with server(options.latency) as url:
        for concurrency in options.concurrency:
            asyncio.run(measure(url, options.latency, concurrency, options.rounds))
    with server(0.0) as url:
        for calls in (200, 800):
            kept = asyncio.run(grown(url, calls))
            print(f"memory kept after {calls} calls: {kept / 1000:.0f} kB")


if __name__ == "__main__":
    main()
