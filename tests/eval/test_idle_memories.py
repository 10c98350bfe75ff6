"""Memories that no item uses are closed once, however many items end at the same time."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from qrmem.config import Settings
from qrmem.eval.memories import Memories
from qrmem.llm.budget import Budget


def ignored(_: Any) -> None:
    """Take an event, and do nothing."""


async def test_items_that_end_together_close_each_idle_memory_once(tmp_path: Path) -> None:
    closed: list[str] = []
    memories = Memories(
        folder=tmp_path,
        settings=Settings(),
        chat=None,
        embedder=None,
        budget=Budget(),
        record=ignored,
        listener=ignored,
    )

    def idle(key: str) -> Any:
        async def close() -> None:
            await asyncio.sleep(0)
            closed.append(key)

        return SimpleNamespace(users=0, store=SimpleNamespace(close=close))

    memories._open.update((key, idle(key)) for key in "abcdef")
    await asyncio.gather(memories.close(), memories.close())
    assert sorted(closed) == [*"abcdef"]
