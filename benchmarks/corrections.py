"""Turns of BEAM's chats that are marked as corrected by later turns, without a chat model.

    python -m benchmarks corrections QRMEM_DATA/beam/100K [--chats 6 7 8 9 10] [--show]

An update is found where a later turn that its question names is marked as correcting an earlier
one that it names. Other turns are those of the user that no such question names. The rules were
chosen on the chats of 100K and 500K. `--show` prints each pair of turns that was marked, to be
read. Pairs that were read by hand are in `tests/eval/data/corrections/marks_read.jsonl`; a pair
that is not there counts as unread.
"""

import argparse
import asyncio
import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

import qrmem
from benchmarks.frame import Figure, note
from qrmem.eval.datasets.conversations import beam
from qrmem.eval.items import Context, Item
from qrmem.types import Turn
from qrmem.types.turns import CHAT_KEY, ROLE_KEY, numbered

_CHATS = ("6", "7", "8", "9", "10")
_PER = 200
_SHOWN = 600
_READ = Path(__file__).parent.parent / "tests/eval/data/corrections/marks_read.jsonl"
_KINDS = {"knowledge_update": "updates", "contradiction_resolution": "contradictions"}


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options: the folder of the chats, and the chats to measure."""
    parser.add_argument("data", type=Path, help="folder of chats of one size")
    parser.add_argument("--chats", nargs="+", default=_CHATS, help="their names")
    parser.add_argument("--show", action="store_true", help="print the turns that are marked")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield the found updates and contradictions, the number of other marks, and the true ones."""
    found = dict.fromkeys(_KINDS, 0)
    asked = dict.fromkeys(_KINDS, 0)
    marked = turns = 0
    judged: list[bool | None] = []
    for name in chosen.chats:
        data = beam(chosen.data / name / "chat.json")
        (context,) = data.contexts.values()
        pairs, said = asyncio.run(_marked(context))
        items = [item for item in data.items if item.labels["ability"] in _KINDS]
        for item in items:
            asked[item.labels["ability"]] += 1
            found[item.labels["ability"]] += _is_found(item, pairs)
        named = {id for item in items for id in item.gold}
        marked += len({early for early, _ in pairs} - named)
        turns += len(said)
        judged += judgements(f"{chosen.data.name}/{name}", pairs)
        if chosen.show:
            for early, late in pairs:
                note(f"{name} {early}: {said[early][:_SHOWN]}\n  {late}: {said[late][:_SHOWN]}\n")
    for kind, label in _KINDS.items():
        least = 1 / 3 if kind == "knowledge_update" else None
        head = f"share found of {asked[kind]} {label}"
        yield Figure(head, found[kind] / max(1, asked[kind]), at_least=least)
    yield Figure(f"others marked in {_PER}, of {turns}", _PER * marked / max(1, turns), at_most=8)
    read = [one for one in judged if one is not None]
    unread = len(judged) - len(read)
    if read:
        yield Figure(
            f"share true of {len(read)} marks read; {unread} unread", sum(read) / len(read)
        )
    else:
        note(f"none of the {unread} marks was read by hand")


def judgements(chat: str, pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
    """Return whether each marked pair of turns was read as a correction; `None` if it was not read.

    Args:
        chat: size and name of the chat, as in `100K/6`.
        pairs: ids of the earlier and the later turn.
    """
    rows = map(json.loads, _READ.read_text(encoding="utf-8").splitlines())
    known = {(row["chat"], row["earlier"], row["later"]): row["true"] for row in rows}
    return [known.get((chat, numbered(early), numbered(late))) for early, late in pairs]


def _is_found(item: Item, pairs: Sequence[tuple[str, str]]) -> bool:
    return any(early in item.gold and late in item.gold for early, late in pairs)


async def _marked(context: Context) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """Return the marked turns of a user with their corrections, and all turns of the user."""
    documents = [one for one in context.documents if one.metadata[ROLE_KEY] == "user"]
    said = {one.id or "": one.text for one in documents}
    async with qrmem.open("memory://", embedder="none") as memory:
        for session, some in groupby(context.documents, lambda one: str(one.metadata[CHAT_KEY])):
            messages = [
                {"role": one.metadata[ROLE_KEY], "content": one.text, "at": one.metadata["at"]}
                for one in some
            ]
            await memory.add_messages(messages, session=session)
        found: dict[str, list[Turn]] = await memory.corrections(said)
    return [(early, one.id) for early, later in found.items() for one in later], said
