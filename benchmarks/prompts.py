"""Users' questions about themselves, and prompts that no turn answers, among real turns.

    QRMEM_DATA=… python -m benchmarks prompts [--embedder none]

Each question about oneself is asked of a memory of 300 turns of LoCoMo's second conversation, and
of one of 200 turns of BEAM's chat 100K/2, in which its one or two statements were inserted. An
answer is found if `recall` returns it within 2,000 tokens. Every second question was held out while
the rules were made. Prompts about nothing are asked of LoCoMo's conversation 26 and BEAM's chat
100K/1: one counts as costly if it takes more than a tenth of the budget. Prompts whose words stand
in several short turns are asked of these turns, put two by two into LoCoMo's second conversation;
they are found if `recall` returns all of them.
"""

import argparse
import asyncio
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import qrmem
from benchmarks.frame import Figure, note
from benchmarks.left_out import keep
from qrmem.eval.datasets.conversations import beam, locomo
from qrmem.eval.items import Context, Dataset

_GOLD = Path(__file__).parents[1] / "tests" / "integration" / "data"
_TURNS, _BETWEEN, _FIRST, _STEP = 300, 30, 8, 37
"""Turns of a conversation; where statements go in: so many turns apart, after one part of so many
of the turns, and so many turns further with each question."""
_TOKENS = 2_000
_MOST = 4


def options(parser: argparse.ArgumentParser) -> None:
    """Add the option for the embedder."""
    parser.add_argument("--embedder", default="none", help="`local` or `light:FOLDER`: MiniLM")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield the answered questions about oneself, and the costly prompts about nothing."""
    data = Path(os.environ["QRMEM_DATA"])
    talks = {
        "LoCoMo": _said(list(locomo(data / "locomo").contexts.values())[1]),
        "BEAM": _said(_only(beam(data / "beam" / "100K" / "2" / "chat.json"))),
    }
    asked = [json.loads(line) for line in (_GOLD / "questions_about_oneself.jsonl").open()]
    yield from asyncio.run(_about_oneself(asked, talks, chosen.embedder))
    yield from asyncio.run(_about_several(talks["LoCoMo"], chosen.embedder))
    contexts = {
        "LoCoMo 26": locomo(data / "locomo").contexts["26"],
        "BEAM 100K/1": _only(beam(data / "beam" / "100K" / "1" / "chat.json")),
    }
    for name, context in contexts.items():
        yield from asyncio.run(_about_nothing(name, context, chosen.embedder))


def _only(data_set: Dataset) -> Context:
    (context,) = data_set.contexts.values()
    return context


def _said(context: Context) -> list[tuple[str, str]]:
    """Return alternating turns of a user and an assistant."""
    texts = [" ".join(one.text.split()) for one in context.documents[:_TURNS]]
    return [("assistant" if n % 2 else "user", text) for n, text in enumerate(texts)]


async def _about_oneself(
    asked: Sequence[Mapping[str, Any]],
    talks: Mapping[str, Sequence[tuple[str, str]]],
    embedder: str,
) -> list[Figure]:
    found: defaultdict[str, list[bool]] = defaultdict(list)
    for n, one in enumerate(asked):
        for talk in talks.values():
            said = list(talk)
            first = len(said) // _FIRST + n * _STEP % (len(said) // 2)
            for place, text in enumerate(one["said"]):
                said.insert(first + place * _BETWEEN, ("user", text))
            async with qrmem.open("memory://", model="", embedder=embedder) as memory:
                await memory.add_messages(said, session="before", at="2026-01-01T00:00:00")
                shown = await memory.recall(one["asked"], session="now", tokens=_TOKENS)
            is_found = any(one["shown"] in turn.text for turn in shown.related)
            kept = "kept aside" if n % 2 else "of choice"
            found[f"{one['kind']}, {kept}"].append(is_found)
            found[f"all, {kept}"].append(is_found)
            if not is_found:
                note("not found:", kept, one["asked"])
    return [
        Figure(f"about oneself, {name}, of {len(some)}", sum(some))
        for name, some in sorted(found.items())
    ]


async def _about_several(talk: Sequence[tuple[str, str]], embedder: str) -> list[Figure]:
    text = (_GOLD / "prompts_about_several_turns.jsonl").read_text(encoding="utf-8")
    rows = list(map(json.loads, text.splitlines()))
    short = [(row["role"], row["content"]) for row in rows if "content" in row]
    asked = [row for row in rows if row.get("shown")]
    said = list(talk)
    for n in range(0, len(short), 2):
        place = len(said) * (n + 1) // (len(short) + 1)
        said[place:place] = short[n : n + 2]
    found: defaultdict[str, list[bool]] = defaultdict(list)
    async with qrmem.open("memory://", model="", embedder=embedder) as memory:
        await memory.add_messages(said, session="before")
        for n, row in enumerate(asked):
            shown = await memory.recall(row["asked"], session="now", tokens=_TOKENS)
            text = "\n".join(turn.text for turn in shown.related)
            kept = "kept aside" if n % 2 else "of choice"
            found[kept].append(all(some in text for some in row["shown"]))
            if not found[kept][-1]:
                note("not found:", kept, row["asked"])
    return [
        Figure(f"about several turns, {kept}, of {len(some)}", sum(some))
        for kept, some in sorted(found.items())
    ]


async def _about_nothing(name: str, context: Context, embedder: str) -> list[Figure]:
    figures = []
    async with qrmem.open("memory://", model="", embedder=embedder) as memory:
        await keep(memory, context)
        for path in sorted(_GOLD.glob("prompts_about_nothing*")):
            costly = []
            for prompt in path.read_text(encoding="utf-8").splitlines():
                shown = await memory.recall(prompt, session="now", tokens=_TOKENS)
                costly += [prompt] if shown.tokens > _TOKENS // 10 else []
            note(name, path.stem, costly)
            figures.append(Figure(f"{path.stem}, {name}, of 40", len(costly), at_most=_MOST))
    return figures
