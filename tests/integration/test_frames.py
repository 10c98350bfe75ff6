"""How deep our own code is from the command line to the HTTP client and to the database.

docs/architecture.md lists the functions on these ways; the lists are compared with what runs.
"""

import asyncio
import re
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

import openai
import pytest
from servers.openai_server import OpenAIServer, in_thread

from qrmem.cli import main
from qrmem.graphstore.codec import dumps

MOST = {"add": 21, "ask": 16}
"""Frames of each command when this was written; fewer are better."""
ROOT = Path(__file__).parents[2]
WALKS = {"add": 14, "ask": 18}
"""Most functions that the page may list for each command."""
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


def listed(command: str) -> list[str]:
    """Return the walk of a command on the page, as `file: function`."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    section = page.partition(f"### From `{command}` to ")[2].partition("\n#")[0]
    return re.findall(r"^\d+\. `([^`]+)`", section, re.MULTILINE)


def walk(stack: list[str]) -> list[str]:
    """Return a stack in the form of the page, from the command on."""
    names = [name.replace(".<locals>", "").replace(":", ": ") for name in reversed(stack)]
    return [name.removeprefix("qrmem/") for name in names if "cli/__init__.py" not in name]


def is_as_listed(command: str, stack: list[str]) -> None:
    names = walk(stack)
    assert listed(command) == names
    assert len(names) <= WALKS[command]
    assert len(set(names)) == len(names)


Whole = Callable[[FrameType], list[str]]


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> Whole:
    """Return the stack of a frame, with our frames that wait in tasks and for threads above it."""
    made_by: WeakKeyDictionary[asyncio.Task[Any], list[str]] = WeakKeyDictionary()
    in_thread_for = threading.local()
    create, execute = asyncio.BaseEventLoop.create_task, asyncio.BaseEventLoop.run_in_executor

    def create_task(
        loop: asyncio.BaseEventLoop, work: Coroutine[Any, Any, Any], **options: Any
    ) -> asyncio.Task[Any]:
        task = create(loop, work, **options)
        made_by[task] = stack(sys._getframe(1))
        return task

    def run_in_executor(
        loop: asyncio.BaseEventLoop, pool: Any, work: Callable[..., Any], *args: Any
    ) -> Any:
        above = stack(sys._getframe(1))

        def run() -> Any:
            in_thread_for.above = above
            return work(*args)

        return execute(loop, pool, run)

    def stack(frame: FrameType) -> list[str]:
        here = own(frame)
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return [*here, *getattr(in_thread_for, "above", ())]
        above = made_by.get(task, []) if task is not None else []
        # Below the event loop stands the command line, in every task.
        shared = len([name for name in here if name in above and name.startswith("qrmem/cli")])
        return [*here[: len(here) - shared], *above]

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_task", create_task)
    monkeypatch.setattr(asyncio.BaseEventLoop, "run_in_executor", run_in_executor)
    return stack


def test_a_prompt_is_sent_by_few_frames_of_ours(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    whole: Whole,
) -> None:
    send = openai.DefaultAsyncHttpxClient.send
    stacks: list[list[str]] = []

    async def sent(client: Any, *args: Any, **options: Any) -> Any:
        stacks.append(whole(sys._getframe(1)))
        return await send(client, *args, **options)

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
    is_as_listed("ask", depths["ask"])


def test_a_document_is_written_by_the_functions_that_the_page_lists(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: Whole
) -> None:
    stacks: list[list[str]] = []

    def written(value: Any) -> str:
        stacks.append(whole(sys._getframe(1)))
        return dumps(value)

    monkeypatch.setattr("qrmem.graphstore.sqlite.stored_documents.dumps", written)
    text = tmp_path / "a.txt"
    text.write_text("Ann Lee met Bob Hale in Rome.")
    monkeypatch.chdir(tmp_path)
    assert main(["add", str(text), "--embedder", "none", "--quiet"]) == 0
    is_as_listed("add", next(stack for stack in stacks if stack[0].endswith(":_upsert")))
