"""How deep our own code is from the command line to the HTTP client."""

import asyncio
import sys
from collections.abc import Coroutine
from pathlib import Path
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import openai
import pytest
from servers.openai_server import OpenAIServer, in_thread

from qrmem.cli import main

MOST = {"add": 21, "ask": 16}
"""Frames of each command when this was written; fewer are better."""
ROOT = Path(__file__).parents[2]
OURS = tuple(f"{ROOT / folder}/" for folder in ("qrmem", "agents", "graphstore", "prompts"))


def own(frame: FrameType | None) -> list[str]:
    """Return our functions on the stack of a frame, innermost first, up to the event loop."""
    found = []
    while frame is not None:
        path = str(Path(frame.f_code.co_filename).resolve())
        if path.startswith(OURS):
            found.append(f"{Path(path).relative_to(ROOT)}:{frame.f_code.co_qualname}")
        frame = frame.f_back
    return found


def test_a_prompt_is_sent_by_few_frames_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made_by: WeakKeyDictionary[asyncio.Task[Any], list[str]] = WeakKeyDictionary()
    create, send = asyncio.BaseEventLoop.create_task, openai.DefaultAsyncHttpxClient.send
    stacks: list[list[str]] = []

    def create_task(
        loop: asyncio.BaseEventLoop, work: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        task = create(loop, work, **options)
        made_by[task] = whole(sys._getframe(1))
        return task

    def whole(frame: FrameType) -> list[str]:
        """Return our frames, those that are waiting in the tasks above included."""
        here = own(frame)
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return here
        above = made_by.get(task, []) if task is not None else []
        # Below the event loop stands the command line, in every task.
        shared = len([name for name in here if name in above and name.startswith("qrmem/cli")])
        return [*here[: len(here) - shared], *above]

    async def sent(client: Any, *args: Any, **options: Any) -> Any:
        stacks.append(whole(sys._getframe(1)))
        return await send(client, *args, **options)

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_task", create_task)
    monkeypatch.setattr(openai.DefaultAsyncHttpxClient, "send", sent)
    text = tmp_path / "a.txt"
    text.write_text("Ann Lee met Bob Hale in Rome. Bob Hale sold the mill to Cid Moor.")
    monkeypatch.chdir(tmp_path)
    depths = {}
    with in_thread(OpenAIServer()) as server:
        common = ["--model", "test", "--base-url", server.url, "--embedder", "none", "--quiet"]
        for command in (["add", str(text)], ["ask", "Who met Bob Hale?"]):
            stacks.clear()
            assert main([*command, *common]) == 0
            depths[command[0]] = max(stacks, key=len)
    with capsys.disabled():
        for name, stack in depths.items():
            print(f"\n{name}: {len(stack)} frames", *reversed(stack), sep="\n  ")
    assert len(depths["add"]) <= MOST["add"]
    assert len(depths["ask"]) <= MOST["ask"]
