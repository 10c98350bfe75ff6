"""A run's memories: the idle ones are closed once, and all of them share one tagger."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from qrmem.config import Settings
from qrmem.eval.items import Build, Context
from qrmem.eval.memories import Memories
from qrmem.extraction.rules_tagger import RulesTagger
from qrmem.llm.budget import Budget
from qrmem.types import Document


def ignored(_: Any) -> None:
    """Take an event, and do nothing."""


def opened(folder: Path, settings: Settings) -> Memories:
    return Memories(
        folder=folder,
        settings=settings,
        chat=None,
        embedder=None,
        budget=Budget(),
        record=ignored,
        listener=ignored,
    )


async def test_items_that_end_together_close_each_idle_memory_once(tmp_path: Path) -> None:
    closed: list[str] = []
    memories = opened(tmp_path, Settings())

    def idle(key: str) -> Any:
        async def close() -> None:
            await asyncio.sleep(0)
            closed.append(key)

        return SimpleNamespace(users=0, store=SimpleNamespace(close=close))

    memories._open.update((key, idle(key)) for key in "abcdef")
    await asyncio.gather(memories.close(), memories.close())
    assert sorted(closed) == [*"abcdef"]


class Counted(RulesTagger):
    """Says how often a tagger was opened and closed, as CoreNLP's server would be."""

    name = "counted"
    events: ClassVar[list[str]] = []

    async def close(self) -> None:
        self.events.append("closed")


async def test_all_memories_of_a_run_share_one_tagger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each memory, so each of QRMeM's questions, started a CoreNLP server that nobody ended."""

    def open_counted(settings: Settings) -> RulesTagger:
        Counted.events.append("opened")
        return Counted()

    monkeypatch.setattr("qrmem.eval.memories.open_tagger", open_counted)
    monkeypatch.setattr("qrmem.extraction.taggers.open_tagger", open_counted)
    memories = opened(tmp_path, Settings(embedder="none", tagger="corenlp"))
    for name in ("one", "two", "three"):
        context = Context(name, (Document(f"Ada Lovelace met {name} in London.", id=name),))
        async with memories.use(context, Build(reader="local")) as memory:
            assert (await memory.store.counts(memory.ns))["segments"] == 1
    await memories.close()
    assert Counted.events == ["opened", "closed"]
