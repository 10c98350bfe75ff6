"""Time of `recall`, and of keeping one more turn, in a long conversation.

    python -m benchmarks chat TEXT [--turns 10000] [--embedder local] [--kept chat.db]
    QRMEM_DATA=… python -m benchmarks chat --sizes 1000 10000 100000 [--beam 500K/1]

Turns are sentences of a text, shuffled; prompts are others of them. With `--sizes` they are real:
those of LoCoMo's conversations, and then sentences of BEAM's chats; prompts are LoCoMo's questions.
With `--beam` a whole chat is kept, too, and asked its own questions. The first call of a process,
which opens the memory, is reported separately, and so is the time of the encoder.
"""

import argparse
import asyncio
import os
import random
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import median

import qrmem
from benchmarks.frame import Figure
from qrmem.eval.datasets.conversations import beam, locomo

_PROMPTS = 21
_BOUNDS = {1_000: 80.0, 10_000: 80.0, 100_000: 150.0}
"""Bounds of `recall` in processor milliseconds, by number of short turns."""
_BEAM_BOUND = 150.0
_CLOCKS = time.perf_counter, time.process_time
Spent = tuple[float, float]
"""Wall and processor milliseconds."""


def messages(text: str, count: int) -> list[tuple[str, str]]:
    """Return turns of one or two sentences each."""
    found = (" ".join(s.split()) for s in re.split(r"(?<=[.!?])\s+", text))
    sentences = [sentence for sentence in found if 30 < len(sentence) < 400]
    draw = random.Random(6)
    draw.shuffle(sentences)
    said = [" ".join(draw.choices(sentences, k=draw.choice((1, 1, 2)))) for _ in range(count)]
    return [("assistant" if n % 2 else "user", text) for n, text in enumerate(said)]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("text", type=Path, nargs="?")
    parser.add_argument("--sizes", type=int, nargs="*", default=(), help="real turns, so many")
    parser.add_argument("--beam", default="", help="a chat of BEAM, such as 500K/1")
    parser.add_argument("--turns", type=int, default=10_000)
    parser.add_argument("--embedder", default="none")
    parser.add_argument("--kept", help="the memory, made where it is not there; default: none kept")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Keep the turns, and recall in another opening."""
    if chosen.sizes or chosen.beam:
        yield from _real(chosen)
        return
    if chosen.text is None:
        raise SystemExit("name a text, --sizes or --beam")
    source = chosen.text.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        path = chosen.kept or f"{folder}/chat.db"
        if not Path(path).exists():
            asyncio.run(_kept(path, messages(source, chosen.turns), chosen.embedder))
        asked = [text for _, text in messages(source, chosen.turns + _PROMPTS)[chosen.turns :]]
        yield from asyncio.run(_recalled(path, asked, chosen.embedder))


def _real(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Measure over real turns, so many in turn, and over a whole chat."""
    data = Path(os.environ["QRMEM_DATA"])
    found = locomo(data / "locomo")
    prompts = [item.question for item in found.items][:: len(found.items) // _PROMPTS][:_PROMPTS]
    runs = [
        (f"{size:,} turns", list(islice(_short_turns(data), size)), prompts, _BOUNDS.get(size))
        for size in chosen.sizes
    ]
    if chosen.beam:
        chat = beam(data / "beam" / chosen.beam / "chat.json")
        asked = [item.question for item in chat.items][:_PROMPTS]
        whole = [
            (str(d.metadata["role"]), d.text) for c in chat.contexts.values() for d in c.documents
        ]
        runs.append((f"BEAM {chosen.beam}", whole, asked, _BEAM_BOUND))
    with tempfile.TemporaryDirectory() as folder:
        for name, said, asked, bound in runs:
            path = chosen.kept or f"{folder}/{len(said)}.db"
            if not Path(path).exists():
                asyncio.run(_kept(path, said, chosen.embedder))
            figures = asyncio.run(_recalled(path, asked, chosen.embedder))
            by_name = {one.name.partition(",")[0]: one.value for one in figures}
            spent = by_name["recall without the encoder"]
            yield Figure(f"recall, {name}, of the processor", spent, "ms", at_most=bound)
            yield Figure(
                f"keeping a turn, {name}, of the processor", by_name["keeping a turn"], "ms"
            )


def _short_turns(data: Path) -> Iterator[tuple[str, str]]:
    """Yield LoCoMo's turns, then sentences of BEAM's chats, each once."""
    seen: set[str] = set()
    sizes = (data / "beam" / size for size in ("100K", "500K", "1M"))
    for found in (locomo(data / "locomo"), *map(beam, sizes)):
        documents = (one for context in found.contexts.values() for one in context.documents)
        for document in documents:
            text = " ".join(document.text.split())
            for part in re.split(r"(?<=[.!?])\s+", text) if found.name == "beam" else [text]:
                if 30 < len(part) < 400 and part not in seen:
                    seen.add(part)
                    yield str(document.metadata["role"]), part


async def _kept(path: str, said: Sequence[tuple[str, str]], embedder: str) -> None:
    async with qrmem.open(path, model="", embedder=embedder) as memory:
        await memory.add_messages(said, at="2026-01-01T00:00:00")


async def _recalled(path: str, asked: Sequence[str], embedder: str) -> list[Figure]:
    recalls: list[Spent] = []
    encoding: list[Spent] = []
    keeping: list[Spent] = []
    began = _now()
    async with qrmem.open(path, model="", embedder=embedder) as memory:
        encoder = (await memory._session.models()).embedder
        for prompt in asked:
            await memory.recall(prompt)
            recalls.append(_since(began))
            began = _now()
            if encoder is not None:
                await encoder.embed([f"{prompt} "])  # another text, so that nothing is cached
            encoding.append(_since(began))
            began = _now()
        for prompt in asked:
            began = _now()
            await memory.add_turn("user", prompt)
            keeping.append(_since(began))
        count = len(await memory.documents())
    wall, work = map(median, zip(*recalls[1:], strict=True))
    encoded = median(one for one, _ in encoding[1:]), median(one for _, one in encoding[1:])
    return [
        Figure(f"{count} turns, first recall with the opening", recalls[0][0], "ms"),
        Figure("recall, median", wall, "ms"),
        Figure("recall, median of the processor", work, "ms"),
        Figure("the encoder's part of it", encoded[1], "ms"),
        Figure("recall without the encoder", work - encoded[1], "ms", at_most=60),
        Figure("keeping a turn, median of the processor", median(w for _, w in keeping), "ms"),
    ]


def _now() -> Spent:
    wall, work = (clock() for clock in _CLOCKS)
    return wall, work


def _since(began: Spent) -> Spent:
    wall, work = _now()
    return 1000 * (wall - began[0]), 1000 * (work - began[1])
