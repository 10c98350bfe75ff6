"""Merging of a person's names without a chat model: precision and recall (QRMEM_DATA).

A JSON file gives, for each novel, people with the names that the text calls them by. A pair is two
names of the file. Precision is the share of the pairs put together that are one person; recall is
the share of one person's pairs that are put together. A name that the memory does not know stands
alone.
"""

import argparse
import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from benchmarks.frame import Figure, note
from qrmem import Document, open
from qrmem.errors import NotFound

_NAMES = Path(__file__).parent.parent / "tests/eval/data/names"
PEOPLE = _NAMES / "people.json", _NAMES / "people_of_other_books.json"
"""Two novels, and three stories.

Beside them are people of more books and stories; each file says where its texts are from. Save
those of a package in one folder, under the names in the file, and give it with `--texts`.
"""


def options(parser: argparse.ArgumentParser) -> None:
    """Add the option for the file of people."""
    parser.add_argument(
        "--people", type=Path, nargs="+", default=PEOPLE, help="files of the same form"
    )
    parser.add_argument("--texts", type=Path, help="folder of their texts", default=None)


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield precision and recall over the pairs of all texts of each file."""
    folder = chosen.texts or Path(os.environ["QRMEM_DATA"])
    for file in chosen.people:
        yield from _measured(file, folder)


def _measured(file: Path, folder: Path) -> Iterator[Figure]:
    novels = json.loads(file.read_text(encoding="utf-8"))["novels"]
    right = put_together = wanted = 0
    for name, people in novels.items():
        meant = {name: place for place, names in enumerate(people) for name in names}
        found = asyncio.run(_entities(_text(folder, name), list(meant)))
        for first, second in combinations(meant, 2):
            is_one, is_joined = meant[first] == meant[second], found[first] == found[second]
            right, wanted = right + (is_one and is_joined), wanted + is_one
            put_together += is_joined
            if is_one != is_joined:
                note("apart:" if is_one else "WRONG:", first, "/", second)
    yield Figure(f"{file.stem}: precision of pairs", right / max(1, put_together), at_least=0.99)
    yield Figure(f"{file.stem}: recall of {wanted} pairs", right / max(1, wanted))


def _text(folder: Path, name: str) -> str:
    """Return a text: a file, or one story of LongBench or QuALITY (`narrativeqa.json:1`)."""
    file, _, item = name.partition(":")
    text = (folder / file).read_text(encoding="utf-8", errors="replace")
    if not item:
        return text
    if file.endswith(".jsonl"):
        return str(json.loads(text.splitlines()[int(item)])["input"])
    story = str(json.loads(text)[item]["origin_prompt"]).partition("Story:")[2]
    return story.rpartition("Now, answer the question")[0]


async def _entities(text: str, names: Sequence[str]) -> dict[str, str]:
    """Return each name's entity; an unknown name is its own entity."""
    found = {}
    async with open("memory://") as memory:
        await memory.add(Document(text))
        for name in names:
            try:
                entity = (await memory.entity(name)).entity
                found[name] = entity.key
                note(f"{name} -> {entity.name} ({entity.type}) {list(entity.forms[:9])}")
            except NotFound:
                found[name] = f"unknown {name}"
                note(f"unknown: {name}")
    return found
