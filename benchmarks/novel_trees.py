"""The prompts of ILM-TR, RAPTOR and reflection for two novels (QRMEM_DATA), with a script.

    PYTHONPATH=tests python -m benchmarks novel_trees [--first 15]

A server on loopback writes the summaries and surprises as the package does without a model, and
answers with the three sentences of its prompt that share most words with the question. Counted is
whether one of the strings that the question's file gives stands in the texts of the last prompt.
"""

import argparse
import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from servers import answering
from servers.openai_server import OpenAIServer, in_thread

import qrmem
from benchmarks.frame import Figure, note
from benchmarks.novel_answers import _holds
from benchmarks.passages import novels
from qrmem.eval.systems.retrieval_baselines import bm25_of_texts
from qrmem.extraction.summaries import NodeText, extractive
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.text.sentences import sentences
from qrmem.text.words import terms
from qrmem.types import Strategy

COUNT = open_tokenizer("builtin").count
SYSTEMS: Mapping[str, tuple[Strategy, dict[str, Any]]] = {
    "inner-loop": ("inner-loop", {}),
    "inner-loop, one round": ("inner-loop", {"max_trials": 1}),
    "raptor": ("raptor", {}),
    "reflection": ("reflection", {}),
}
ROOM = 3_500
"""Tokens of sentences that BM25 may show: RAPTOR's budget."""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the option for the number of questions."""
    parser.add_argument("--first", type=int, default=15, help="questions of each novel")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield for each system how many last prompts contain the answer, and their mean size."""
    shown: dict[str, list[tuple[bool, int]]] = {}
    for name, text, questions in novels(Path(os.environ["QRMEM_DATA"])):
        note(name)
        asked = questions[: chosen.first]
        for system, rows in asyncio.run(_novel(text, asked)).items():
            shown.setdefault(system, []).extend(rows)
    for system, rows in shown.items():
        holding = sum(holds for holds, _ in rows)
        yield Figure(f"{system}: last prompts of {len(rows)} that hold the answer", holding)
        yield Figure(f"{system}: tokens of these texts", sum(n for _, n in rows) / len(rows))


async def _novel(
    text: str, questions: Sequence[tuple[str, Sequence[str]]]
) -> dict[str, list[tuple[bool, int]]]:
    found: dict[str, list[tuple[bool, int]]] = {}
    every = [text[start:end] for start, end in sentences(text)]
    for question, wanted in questions:
        scores = bm25_of_texts(question, every)
        best = sorted(range(len(every)), key=lambda n: -scores[n])
        found.setdefault("BM25 over sentences", []).append(_seen(_within(every, best), wanted))
    with in_thread(OpenAIServer(answer=_reply)) as server, TemporaryDirectory() as folder:
        file = str(Path(folder) / "novel.db")
        async with qrmem.open(file, embedder="none") as memory:
            await memory.add(qrmem.Document(text))  # read by rules: the model writes the trees
        chosen: dict[str, Any] = {
            "model": "test",
            "base_url": server.url,
            "window": 4096,
            "cache": False,
        }
        async with qrmem.open(file, embedder="none", **chosen) as memory:
            await memory.build_tree(preset="paper")
            await memory.build_tree(kind="raptor", preset="paper")
            for question, wanted in questions:
                for system, (strategy, how) in SYSTEMS.items():
                    server.stats.bodies.clear()
                    await memory.ask(question, strategy=strategy, on_exhausted="force", **how)
                    texts = "\n".join(_texts(server.stats.bodies[-1]))
                    found.setdefault(system, []).append(_seen(texts, wanted))
    return found


def _seen(texts: str, wanted: Sequence[str]) -> tuple[bool, int]:
    return _holds(texts, wanted), COUNT(texts)


def _within(every: Sequence[str], best: Sequence[int]) -> str:
    kept, room = [], ROOM
    for n in best:
        room -= COUNT(every[n])
        if room < 0:
            break
        kept.append(every[n])
    return "\n".join(kept)


def _texts(body: Mapping[str, Any]) -> list[str]:
    """Return the texts between marks, but not the memory of the loop."""
    user = str(body["messages"][-1]["content"]).partition("(Memory):")[0]
    return [match.group(3) for match in answering.TEXT.finditer(user)]


def _reply(request: Mapping[str, Any]) -> str:
    system, user = (str(message["content"]) for message in (request["messages"] * 2)[:2])
    texts = tuple(match.group(3) for match in answering.TEXT.finditer(user))
    if "(Surprise):" in system:
        made = extractive(NodeText(texts), COUNT, limit=300)
        return f"(Summary): {made.summary}\n(Surprise): " + ("\n".join(made.surprises) or "None")
    if "summarise a part" in system:
        return extractive(NodeText(texts), COUNT, limit=300, surprising=False).summary
    if "(Question):" in user or ("Question: " in user and not answering.schema_of(request)):
        question = set(terms(user.rpartition("uestion")[2]))
        whole = "\n".join(texts)
        said = list(dict.fromkeys(whole[start:end].strip() for start, end in sentences(whole)))
        said.sort(key=lambda one: -len(question & set(terms(one))))
        return " ".join(said[:3])
    return answering.answer(request)
