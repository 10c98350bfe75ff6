"""Evidence that `recall` finds with weights that were chosen without the tested conversation.

    QRMEM_DATA=… python -m benchmarks left_out [--embedder light:FOLDER] [--kept FOLDER]
        [--beam 100K] [--chats 10] [--every 3]

For each of LoCoMo's conversations, and each of BEAM's chats, three weights of
`qrmem/retrieval/turn_ranking.py` are chosen again, from those of `GRIDS`, by all the others of its
set: the setting that finds most evidence within 2,000 tokens. The figures are of the one that was
left out, each asked by its own setting. A budget counts what is shown of turns. With `--shipped`
BEAM's chats are asked by the shipped weights, and nothing is chosen.
"""

import argparse
import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np

import qrmem
from benchmarks.frame import Figure, note
from qrmem.eval.datasets.conversations import beam, locomo
from qrmem.eval.items import Context, Item
from qrmem.memory.chat.conversation import Chat
from qrmem.memory.chat.recall import recalled
from qrmem.retrieval import turn_ranking
from qrmem.text.words import terms
from qrmem.types import Recalled
from qrmem.types.options import RecallOptions
from qrmem.types.turns import CHAT_KEY, ROLE_KEY

_AROUND = ((), turn_ranking._BESIDE)
GRIDS: Mapping[str, Mapping[str, Sequence[Any]]] = {
    "locomo": {
        "_BESIDE": _AROUND,
        "_SPEAKER": (0.0, turn_ranking._SPEAKER),
        "_TIME": (0.0, turn_ranking._TIME),
    },
    "beam": {
        "_BESIDE": _AROUND,
        "_USER": (0.0, turn_ranking._USER, 2 * turn_ranking._USER),
        "STANDING": (0.0, turn_ranking.STANDING),
    },
}
"""Weights by set, with the values to try: 0, the shipped value, and twice that."""
BUDGETS = (2_000, 7_000)
_ANSWERED = (
    *("event_ordering", "information_extraction", "knowledge_update"),
    *("multi_session_reasoning", "temporal_reasoning"),
)
"""Abilities of BEAM whose questions have an answer in its own words."""

Shares = dict[str, float]
"""Found evidence by the id of a question."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One conversation with its questions.

    Attributes:
        name: of the set, and of the conversation.
        items: whose evidence is in it.
    """

    set: str
    context: Context
    items: Sequence[Item]

    @property
    def settings(self) -> list[dict[str, Any]]:
        """Settings to try for the weights of its set."""
        grid = GRIDS[self.set.partition("/")[0]]
        return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]

    @property
    def name(self) -> str:
        """Its unique name."""
        return f"{self.set}-{self.context.id}".replace("/", "-")


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options: the data and the embedder."""
    parser.add_argument("--embedder", default="none", help="`local` or `light:FOLDER`: MiniLM")
    parser.add_argument("--beam", default="100K", help="size of BEAM's chats; '': none")
    parser.add_argument("--chats", type=int, default=10, help="so many of BEAM's at most")
    parser.add_argument("--every", type=int, default=3, help="of LoCoMo's questions, to choose by")
    parser.add_argument("--shipped", action="store_true", help="the shipped weights, BEAM alone")
    parser.add_argument("--kept", type=Path, default=Path("build/benchmarks"))


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield the found evidence of LoCoMo, and of BEAM within both budgets."""
    chosen.kept.mkdir(parents=True, exist_ok=True)
    yield from asyncio.run(_measured(chosen))


def _conversations(chosen: argparse.Namespace) -> Iterator[Asked]:
    data = Path(os.environ["QRMEM_DATA"])
    sets = [] if chosen.shipped else [("locomo", locomo(data / "locomo"), 99)]
    if chosen.beam:
        found = beam(data / "beam" / chosen.beam)
        sets.append((f"beam/{chosen.beam}", found, chosen.chats))
    for name, data_set, most in sets:
        for context in list(data_set.contexts.values())[:most]:
            items = [i for i in data_set.items if i.context == context.id and i.gold]
            yield Asked(name, context, items)


async def _measured(chosen: argparse.Namespace) -> list[Figure]:
    asked = list(_conversations(chosen))
    tried: dict[str, list[float]] = {}
    for one in asked if not chosen.shipped else ():
        every = chosen.every if one.set == "locomo" else 1
        tried[one.name] = await _tried(one, one.items[::every], chosen)
        note(one.name, [round(100 * share, 1) for share in tried[one.name]])
    found: defaultdict[str, list[float]] = defaultdict(list)
    for one in asked:
        setting = one.settings[_best(asked, one, tried)] if tried else {}
        note(one.name, {key: value for key, value in setting.items() if key != "_BESIDE"})
        async with _chat(one, chosen) as chat, _weighted(setting):
            for item in one.items:
                for budget in BUDGETS[: 1 if one.set == "locomo" else 2]:
                    shown = await recalled(chat, RecallOptions(prompt=item.question, tokens=budget))
                    _count(found, one, item, budget, shown)
    return [Figure(name, 100 * float(np.mean(shares)), "%") for name, shares in found.items()]


def _count(
    found: defaultdict[str, list[float]], asked: Asked, item: Item, budget: int, shown: Recalled
) -> None:
    head = f"{asked.set}, {budget:,} tokens"
    share = _evidence(item, shown)
    found[f"{head}: evidence"].append(share)
    if asked.set == "locomo":
        return
    ability = item.labels["ability"]
    found[f"{head}: evidence, {ability}"].append(share)
    answer = set(terms(" ".join(item.answers))) - set(terms(item.question))
    if ability in _ANSWERED and answer:
        said = set(terms(" ".join(turn.text for turn in (*shown.related, *shown.recent))))
        found[f"{head}: the answer's words, of {len(_ANSWERED)} abilities"].append(
            len(answer & said) / len(answer)
        )


def _best(asked: Sequence[Asked], without: Asked, tried: Mapping[str, Sequence[float]]) -> int:
    """Return the setting that finds most in all other conversations of a set; ties: the first."""
    others = [tried[one.name] for one in asked if one.set == without.set and one is not without]
    return int(np.argmax(np.round(np.mean(others, axis=0), 6)))


async def _tried(asked: Asked, items: Sequence[Item], chosen: argparse.Namespace) -> list[float]:
    """Return the share of evidence that each setting finds within the first budget."""
    shares = np.zeros((len(items), len(asked.settings)))
    async with _chat(asked, chosen) as chat:
        for row, item in enumerate(items):
            once = replace(chat, searcher=_once(chat.searcher))
            for column, setting in enumerate(asked.settings):
                async with _weighted(setting):
                    wanted = RecallOptions(prompt=item.question, tokens=BUDGETS[0])
                    shares[row, column] = _evidence(item, await recalled(once, wanted))
    return [float(share) for share in shares.mean(axis=0)]


def _evidence(item: Item, shown: Recalled) -> float:
    ids = {turn.id for turn in (*shown.related, *shown.recent)}
    return len(ids.intersection(item.gold)) / len(item.gold)


def _once(searcher: Any) -> Any:
    """Return a searcher that caches the look-up of a question."""
    other, known = searcher.reranked_by(None), {}

    async def near(question: str, k: int, documents: Any = None) -> Any:
        key = (question, k, documents)
        if key not in known:
            known[key] = await searcher.near(question, k, documents)
        return known[key]

    other.near = near
    return other


@asynccontextmanager
async def _weighted(setting: Mapping[str, Any]) -> AsyncIterator[None]:
    """Use other weights within this context."""
    before = {name: getattr(turn_ranking, name) for name in setting}
    try:
        for name, value in setting.items():
            setattr(turn_ranking, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(turn_ranking, name, value)


@asynccontextmanager
async def _chat(asked: Asked, chosen: argparse.Namespace) -> AsyncIterator[Chat]:
    """Open a conversation; store it first if it is missing."""
    path = chosen.kept / f"{asked.name}-{chosen.embedder.partition(':')[0]}.db"
    is_new = not path.exists()
    async with qrmem.open(str(path), model="", embedder=chosen.embedder) as memory:
        if is_new:
            await keep(memory, asked.context)
        session = memory._session
        yield Chat(
            session.store,
            session.ns,
            await session.searcher(),
            await session.fragment_scorer(),
            (await session.models()).counter.count,
        )


async def keep(memory: qrmem.Memory, context: Context) -> None:
    """Store all turns with the numbers of the data set."""
    for name, some in groupby(context.documents, lambda one: str(one.metadata[CHAT_KEY])):
        messages = [
            {
                "role": one.metadata[ROLE_KEY],
                "content": one.text,
                "at": one.metadata["at"],
                "name": one.metadata.get("speaker", ""),
            }
            for one in some
        ]
        await memory.add_messages(messages, session=name)
    kept = [turn.id for turn in await memory.turns()]
    if kept != [one.id for one in context.documents]:
        raise SystemExit(f"the turns of {context.id} have other numbers than the data set's")
