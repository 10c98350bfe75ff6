"""How long `recall` takes in a long conversation.

    python -m benchmarks.chat_recall TEXT [--turns 10000]

Turns are sentences of a text, shuffled; the first call of a process, which opens the memory, is
told apart from those that follow.
"""

import argparse
import asyncio
import os
import random
import re
import tempfile
import time
from pathlib import Path

import qrmem

_ASKED = ("What did she say about the ball?", "Who sold the house?", "When does the ship leave?")


def messages(text: str, count: int) -> list[tuple[str, str]]:
    """Return turns of one or two sentences each."""
    found = (" ".join(s.split()) for s in re.split(r"(?<=[.!?])\s+", text))
    sentences = [sentence for sentence in found if 30 < len(sentence) < 400]
    draw = random.Random(6)
    draw.shuffle(sentences)
    said = [" ".join(draw.choices(sentences, k=draw.choice((1, 1, 2)))) for _ in range(count)]
    return [("assistant" if n % 2 else "user", text) for n, text in enumerate(said)]


async def measure(path: str, text: str, count: int) -> None:
    """Keep the turns, and recall in another opening."""
    async with qrmem.open(path, model="", embedder="none") as memory:
        await memory.add_messages(messages(text, count), at="2026-01-01T00:00:00")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {count} turns")
    began, busy = time.perf_counter(), time.process_time()
    async with qrmem.open(path, model="", embedder="none") as memory:
        for prompt in _ASKED:
            await memory.recall(prompt)
            wall, work = time.perf_counter() - began, time.process_time() - busy
            print(f"recalled in {wall:.2f} s, of the processor {work:.2f} s")
            began, busy = time.perf_counter(), time.process_time()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("--turns", type=int, default=10_000)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = chosen.text.read_text(encoding="utf-8")
        asyncio.run(measure(f"{folder}/chat.db", source, chosen.turns))
