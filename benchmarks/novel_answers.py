"""Answers of a chat model to questions about two novels, and the passages it saw (QRMEM_DATA).

Both novels are read by rules; the model only answers. An answer is right if it holds one of the
strings that the question's file gives; it was shown if one of the passages of its readings does.

    .ci/real-model .venv/bin/python -m benchmarks novel_answers --window 2048 --trials 1
"""

import argparse
import asyncio
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.frame import Figure, note
from benchmarks.passages import novels
from qrmem import Document, open
from qrmem.memory import Memory

Row = tuple[str, str, bool, bool]


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options: the model, the window and the trials."""
    env = os.environ.get
    parser.add_argument("--model", default=env("QRMEM_REAL_MODEL", env("QRMEM_MODEL", "")))
    parser.add_argument("--base-url", default=env("QRMEM_REAL_MODEL_URL", env("OPENAI_BASE_URL")))
    parser.add_argument("--window", type=int, default=2048)
    parser.add_argument("--trials", type=int, default=1, help="readings of a question at most")
    parser.add_argument("--skip", type=int, default=0, help="questions of each novel left out")
    parser.add_argument("--first", type=int, default=25, help="questions of each novel asked")
    parser.add_argument("--abstain", action="store_true", help="do not force an answer")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield the number of right answers, and of questions whose answer was in the passages."""
    rows: list[Row] = []
    for _, text, questions in novels(Path(os.environ["QRMEM_DATA"])):
        rows += asyncio.run(_asked(text, questions[chosen.skip :][: chosen.first], chosen))
    statuses = Counter(status for _, status, _, _ in rows)
    note("statuses:", dict(statuses))
    yield Figure(f"questions, of {len(rows)}, whose answer the model was shown", _sum(rows, 2))
    yield Figure(f"right answers, of {len(rows)}", _sum(rows, 3))
    yield Figure("right, of those that were shown", sum(row[2] and row[3] for row in rows))


def _sum(rows: Sequence[Row], place: int) -> int:
    return sum(bool(row[place]) for row in rows)


async def _asked(
    text: str, questions: Sequence[tuple[str, Sequence[str]]], chosen: argparse.Namespace
) -> list[Row]:
    found: list[Row] = []
    with TemporaryDirectory() as folder:
        file = str(Path(folder) / "novel.db")
        async with open(file, embedder="none") as memory:
            await memory.add(Document(text))
        told = {"model": chosen.model, "base_url": chosen.base_url, "window": chosen.window}
        async with open(file, embedder="none", **told) as memory:
            for question, wanted in questions:
                answer = await memory.ask(
                    question,
                    max_trials=chosen.trials,
                    on_exhausted="abstain" if chosen.abstain else "force",
                )
                was_shown = _holds(await _shown(memory, question), wanted)
                row = (question, answer.status, was_shown, _holds(answer.text, wanted))
                found.append(row)
                note(*row, json.dumps(answer.text[:160]), wanted)
    return found


async def _shown(memory: Memory, question: str) -> str:
    """Return the texts of all segments that the model read for the last question."""
    steps = (await memory.trail()).steps
    ids = {one.segment_id for step in steps for one in step.read}
    hits = await memory.search(question, k=100)
    return "\n".join(hit.text for hit in hits if hit.segment_id in ids)


def _holds(text: str, wanted: Sequence[str]) -> bool:
    flat = " ".join(text.split()).casefold()
    return any(" ".join(one.split()).casefold() in flat for one in wanted)
