"""Some notes, letters and a book; reading them apart; and all that a memory of them is made of."""

import random
from pathlib import Path
from typing import Any

import pytest

import qrmem
from qrmem import apart
from qrmem.config import Settings
from qrmem.graphstore import open_store
from qrmem.inspecting import write_graphml

NS = "default"
NAMES = "Ann Bob Cid Dot Eve Fay Gus Hal Ida Jon".split()  # noqa: SIM905
SURNAMES = "Vey Brandt Holt Ashby Reed Marsh Quill Stone".split()  # noqa: SIM905
PLACES = "Nantucket Lisbon Harwich Bergen Cadiz Hull".split()  # noqa: SIM905


def text(seed: int, sentences: int) -> str:
    dice = random.Random(seed)

    def person() -> str:
        return f"{dice.choice(NAMES)} {dice.choice(SURNAMES)}"

    return " ".join(
        f"{person()} met {person()} in {dice.choice(PLACES)} on {dice.randrange(1, 28)} May "
        f"{dice.randrange(1800, 1900)}. He left the long letter of {dice.choice(SURNAMES)} there."
        for _ in range(sentences)
    )


DOCUMENTS: list[Any] = [
    *({"id": f"note {n}", "title": f"Note {n}", "text": text(n, 3)} for n in range(40)),
    {"id": "book", "title": "The book", "text": text(1000, 90)},
    *({"id": f"letter {n}", "title": f"Letter {n}", "text": text(n, 12)} for n in range(40, 56)),
]


def share_out_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have so little read by other processes."""
    monkeypatch.setattr(apart, "LEAST", 100)
    monkeypatch.setattr("qrmem.apart.ahead.BATCH", 8)
    monkeypatch.setattr("qrmem.apart.ahead.UNASKED", 2)
    monkeypatch.setattr("qrmem.agents.reading.LOCAL_BATCH", 8)
    monkeypatch.setattr("qrmem.agents.building.PORTION", 32)


async def kept(path: Path) -> list[Any]:
    """Return what a memory is made of."""
    store = await open_store(str(path), Settings())
    ids = sorted(await store.document_texts(NS))
    await write_graphml(store, NS, str(path.with_suffix(".xml")))
    found = [
        await store.contributions(NS, *ids),
        await store.ledger(NS),
        await store.merged_segments(NS, *ids),
        [info.summary for info in await store.documents(NS)],
        path.with_suffix(".xml").read_text(),
    ]
    await store.close()
    return found


async def read(path: Path, documents: list[Any] = DOCUMENTS, **chosen: Any) -> qrmem.AddReport:
    async with qrmem.open(str(path), segment_tokens=60, embedder="none", **chosen) as memory:
        return await memory.add(documents)
