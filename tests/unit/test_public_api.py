"""The public names are deliberate, and the synchronous face is the asynchronous one."""

import inspect
import os
import pydoc
import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

import pytest

import qrmem
import qrmem.sync
from qrmem import memory as facade
from qrmem.agents import STRATEGIES
from qrmem.config import Settings
from qrmem.errors import UsageError
from qrmem.memory.keywords import AskKeywords, OpenOptions
from qrmem.types import Strategy
from qrmem.types.options import AddOptions, AskOptions, RecallOptions

ROOT = Path(__file__).parents[2]


def test_every_public_name_can_be_imported() -> None:
    for name in qrmem.__all__:
        assert getattr(qrmem, name) is not None
    assert sorted(qrmem.__all__) == list(qrmem.__all__)


def test_public_names_are_documented() -> None:
    for name in qrmem.__all__:
        assert inspect.getdoc(getattr(qrmem, name)), name
    for name, method in public_methods(facade.Memory).items():
        assert inspect.getdoc(method), name


def test_every_method_is_shown_with_its_arguments_and_has_words_for_no_others() -> None:
    for name, method in public_methods(facade.Memory).items():
        first, *parameters = inspect.signature(method).parameters  # type: ignore[arg-type]
        assert first in {"self", "memory"}, name
        _, _, args = (inspect.getdoc(method) or "").partition("Args:\n")
        described = re.findall(r"^    (\w+):", args.partition("\n\n")[0], re.MULTILINE)
        assert set(described) <= {*parameters}, name
        assert f"{name}(" in pydoc.plain(pydoc.render_doc(getattr(facade.Memory, name)))


ASYNC_ONLY = {"listening"}
"""What has no use without a loop of one's own."""
SYNC_ONLY = {"call", "acall"}
"""What runs awaited functions on the loop of the memory's thread."""


def public_methods(kind: type) -> dict[str, object]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: method for name, method in found if not name.startswith("_")}


def test_the_synchronous_memory_has_the_same_methods_with_the_same_arguments() -> None:
    awaited = public_methods(facade.Memory)
    plain = public_methods(qrmem.sync.Memory)
    for name in SYNC_ONLY:
        del plain[name]
    assert set(plain) == set(awaited) - ASYNC_ONLY
    for name, method in plain.items():
        ours = inspect.signature(method).parameters.values()  # type: ignore[arg-type]
        theirs = inspect.signature(awaited[name]).parameters.values()  # type: ignore[arg-type]
        assert [(p.name, p.kind, p.default) for p in ours] == [
            (p.name, p.kind, p.default) for p in theirs
        ], name


def test_both_open_functions_take_the_same_arguments() -> None:
    ours = inspect.signature(qrmem.sync.open).parameters
    theirs = inspect.signature(facade.open).parameters
    assert list(ours) == list(theirs)


def test_dir_lists_every_public_name() -> None:
    assert set(qrmem.__all__) | {"sync"} <= set(dir(qrmem))
    assert all(hasattr(qrmem, name) for name in dir(qrmem))


def test_options_of_open_are_the_settings_and_those_of_ask_its_own() -> None:
    settings = {field.name for field in fields(Settings)} - {"memory", "namespace"}
    assert set(OpenOptions.__annotations__) == settings
    own = inspect.signature(facade.Memory.ask).parameters
    names = {name for name in own if name not in {"self", "question", "caps"}}
    caps = {"max_calls", "max_tokens", "max_cost", "max_seconds"}
    assert set(AskKeywords.__annotations__) - caps == names


@pytest.mark.parametrize(
    ("method", "kind", "own"),
    [
        ("ask", AskOptions, {"question"}),
        ("recall", RecallOptions, {"prompt"}),
        ("add", AddOptions, {"source"}),
    ],
)
def test_options_have_the_names_and_the_defaults_of_the_methods(
    method: str, kind: type, own: set[str]
) -> None:
    """What is empty in options is `None` in a call; the caps of a call are one field."""
    defaults = {one.name: one.default for one in fields(kind)}
    for name, taken in inspect.signature(getattr(facade.Memory, method)).parameters.items():
        if name not in {"self", "caps", *own}:
            assert (taken.default or None) == (defaults[name] or None), name


def test_a_strategy_that_can_be_named_is_one_that_can_be_followed() -> None:
    assert list(STRATEGIES) == list(get_args(Strategy))
    assert all(f"`{name}`" in (inspect.getdoc(facade.Memory.ask) or "") for name in STRATEGIES)


SNIPPET = """
import asyncio
import qrmem
async def main() -> None:
    async with qrmem.open("m.db", embedder="none", window=4096, {opened}) as memory:
        answer = await memory.ask("Who?", {asked})
        async for item in memory.stream("Who?", {streamed}):
            print(item, answer.text)
        print(await memory.plan(ask="Who?", {planned}))
with qrmem.sync.open("m.db", {opened}) as sync_memory:
    sync_memory.ask("Who?", {asked})
"""
RIGHT = {
    "opened": 'mode="paper"',
    "asked": 'strategy="reflection", max_trials=2',
    "streamed": "max_calls=3",
    "planned": 'strategy="passages"',
}
WRONG = {
    "opened": ('modle="m"', 'mode="papre"'),
    "asked": ('strategy="reflexion"', "trials=2"),
    "streamed": ("max_call=3", "window='x'"),
    "planned": ("stratgy='passages'",),
}


def test_a_wrong_option_fails_in_mypy(tmp_path: Path) -> None:
    (tmp_path / "right.py").write_text(SNIPPET.format(**RIGHT))
    for name, values in WRONG.items():
        for n, value in enumerate(values):
            wrong = SNIPPET.format(**{**RIGHT, name: value})
            (tmp_path / f"wrong_{name}_{n}.py").write_text(wrong)
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--cache-dir=cache",
        ".",
    ]
    here = {**os.environ, "MYPYPATH": str(ROOT)}
    ran = subprocess.run(
        command, cwd=tmp_path, env=here, capture_output=True, text=True, timeout=280
    )
    found = {line.split(":")[0] for line in ran.stdout.splitlines() if ": error:" in line}
    assert found == {path.name for path in tmp_path.glob("wrong_*.py")}, ran.stdout + ran.stderr


async def test_a_memory_that_is_not_open_says_how_to_open_it(tmp_path: Path) -> None:
    opening = qrmem.open(str(tmp_path / "m.db"))
    assert "async with" in repr(opening)
    with pytest.raises(AttributeError, match="await"):
        opening.ask("Who?")
    with pytest.raises(UsageError, match="async with"), opening:
        pass
    assert not hasattr(opening, "nothing_of_that_name")


HOSTILE = "<script>alert(1)</script> & <b onclick='x'>\n" * 20


async def test_values_show_themselves_on_one_line_and_escaped_in_a_notebook() -> None:
    async with qrmem.open("memory://", embedder="none", namespace="<i>") as memory:
        documents = [
            {"id": f"{n} <b>", "title": HOSTILE, "text": f"{n}: {HOSTILE} harbour"}
            for n in range(40)
        ]
        report = await memory.add(documents)
        long = replace(report, added=tuple(f"document-{n}.txt" for n in range(400)))
        assert "397 more" in repr(long)
        hits = await memory.search("harbour script", k=3)
        answer = await memory.ask("Where is the harbour?", strategy="reflection")
        status = await memory.status()
        shown: list[object] = [
            long,
            *hits,
            answer,
            answer.trail,
            *answer.trail.steps,
            *answer.citations,
        ]
        shown += [status, memory, await memory.document("1 <b>"), await memory.plan(ask="Who?")]
        for value in shown:
            assert len(repr(value)) <= 400, type(value)
            assert "\n" not in repr(value)
        pages: list[Any] = [*hits, *answer.citations, answer, answer.trail, memory]
        for page in pages:
            drawn = page._repr_html_()
            assert "<script>" not in drawn
            assert "<b onclick" not in drawn
            assert "<i>" not in drawn or page is answer
        assert "&lt;<mark>script</mark>&gt;" in hits[0]._repr_html_()
