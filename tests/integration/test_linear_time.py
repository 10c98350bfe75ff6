"""Every text rule is linear, or looks at a bounded part: no text stops a service.

Each rule, and each way in for a text, gets units that patterns with nested or unbounded repetitions
cannot bear, at three lengths. Processor time is compared, so a busy machine does not matter.
"""

import contextlib
import importlib
import inspect
import json
import pkgutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from documents import docx_of, epub_file, pdf, sheet_of

import qrmem
import qrmem.text
from qrmem.errors import QrmemError
from qrmem.retrieval import standing
from qrmem.retrieval.turn_ranking import PromptTerms
from qrmem.schema import load_schema
from qrmem.text import dates, files, names, numbers, tense, times, words
from qrmem.text.names import aliases

UNITS = (
    *("please ", "always ", "I prefer tea ", "moved to ", "3 June ", "in May ", "1 km ", "since 2"),
    *(
        "=",
        "|",
        '"',
        "(",
        "[",
        "<",
        "<a ",
        "{",
        "`",
        "\\",
        "*",
        "- ",
        "> ",
        ": ",
        "a. ",
        "A.",
        "A ",
    ),
    *("Ann of ", "Mr. A", "the ", "1,", " ", "\n", "漢é"),
)
SIZES = (1_000, 4_000, 16_000)
MOST = 6
"""Greatest growth of the time from one size to the next, which is four times as long."""
FLOOR = 0.02
"""Seconds below which a time is not compared."""
TRIES = 3


def spent(call: Callable[[str], object], text: str) -> float:
    """Return the processor time of a call; a refused text counts, too."""
    began = time.process_time()
    with contextlib.suppress(QrmemError, ValueError):
        call(text)
    return time.process_time() - began


def grows(call: Callable[[str], object], unit: str) -> list[float]:
    """Return the times at the sizes, if one is more than `MOST` times the one before."""
    found: list[float] = []
    for size in SIZES:
        found.append(spent(call, text_of(unit, size)))
        before = found[-2] if len(found) > 1 else found[-1]
        if found[-1] > FLOOR and found[-1] > MOST * before:
            return found
    return []


def text_of(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


def too_slow(call: Callable[[str], object]) -> list[tuple[str, list[float]]]:
    """Return the units with which the time grows too much, each time of some tries."""
    spent(call, "Ann Holt met Bob on 3 May 2024.")  # reads lists, compiles patterns
    slow = []
    for unit in UNITS:
        tries = [found for _ in range(TRIES) if (found := grows(call, unit))]
        slow += [(unit, tries[-1])] if len(tries) == TRIES else []
    return slow


def rules() -> Iterator[tuple[str, Callable[[str], object]]]:
    """Yield the public functions of texts by name; those that only take texts are found."""
    day = date(2026, 3, 5)
    yield "periods", lambda text: times.periods(text, day)
    yield "direction", lambda text: tense.direction(text, len(text) // 2, len(text) // 2 + 3)
    yield "stated_validity", lambda text: dates.stated_validity(text, [text[:3]], "2026-03-05")
    yield "said_at", lambda text: dates.said_at({"date": text})
    yield "unread_date", lambda text: dates.unread_date({"date": text})
    yield "core_of", lambda text: aliases.core_of(text)
    yield "numbers", lambda text: numbers.numbers(text.split())
    yield "split_titles", lambda text: aliases.split_titles(text.split())
    yield "occurs_in", lambda text: names.occurs_in("Ann Holt", text)
    yield "occurrences", lambda text: names.occurrences("Ann Holt", text)
    yield "rouge_l", lambda text: words.rouge_l(words.tokens(text), words.tokens("Ann met Bob"))
    yield "the prompt's kind", _kind_of_prompt
    modules = [standing, *(_modules(qrmem.text))]
    for module in modules:
        for name, value in vars(module).items():
            is_own = inspect.isfunction(inspect.unwrap(value)) if callable(value) else False
            if not is_own or name.startswith("_") or value.__module__ != module.__name__:
                continue
            needed = [
                one
                for one in inspect.signature(value).parameters.values()
                if one.default is one.empty
            ]
            if needed and all(one.annotation in (str, "str") for one in needed):
                yield f"{module.__name__}.{name}", _with(value, len(needed))


def _with(rule: Callable[..., object], count: int) -> Callable[[str], object]:
    """Return a call of a rule with the same text for each argument, to its end."""

    def call(text: str) -> object:
        result = rule(*[text] * count)
        return list(result) if isinstance(result, Iterator) else result

    return call


def _kind_of_prompt(text: str) -> None:
    asked = PromptTerms(text)
    _ = asked.is_of_all, asked.is_of_conversation, asked.is_spread
    asked.are_shared([["ann"]])
    asked.names(["Ann"])


def _modules(package: Any) -> Iterator[Any]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


RULES = dict(rules())


def test_there_are_thirty_two_units() -> None:
    assert len(set(UNITS)) == len(UNITS) == 32


@pytest.mark.parametrize("name", RULES)
def test_a_rule_takes_time_in_proportion_to_its_text(name: str) -> None:
    assert too_slow(RULES[name]) == []


# Ways in for a text: what a user, a client or a file can bring.


def turn(memory: qrmem.Memory, text: str) -> Awaitable[object]:
    return memory.add_turn("user", f"Hello. {text}")


def document(memory: qrmem.Memory, text: str) -> Awaitable[object]:
    return memory.add_text(f"Hello. {text}", id=f"d{len(text)}")


def dated(memory: qrmem.Memory, text: str) -> Awaitable[object]:
    return memory.add_text("Ann Holt met Bob.", id=f"m{len(text)}", metadata={"date": text})


def recalled(memory: qrmem.Memory, text: str) -> Awaitable[object]:
    return memory.recall(f"Ann {text}", session="x")


def searched(memory: qrmem.Memory, text: str) -> Awaitable[object]:
    return memory.search(f"Ann {text}")


def asked(memory: qrmem.Memory, text: str) -> Awaitable[object]:
    return memory.ask(f"Whom did Ann meet? {text}", keep_trail=False)


def looked_up(memory: qrmem.Memory, text: str) -> Awaitable[object]:
    return memory.entity(f"Ann {text}")


DOORS = (turn, document, dated, recalled, searched, asked, looked_up)


@pytest.fixture
async def memory() -> AsyncIterator[qrmem.Memory]:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add_text("Ann Holt met Bob Stone in Rome on 3 May 2024.", id="a")
        await memory.add_turn("user", "My cat went to Rome on 3 June.", session="s")
        yield memory


@pytest.mark.parametrize("door", DOORS)
async def test_a_way_in_takes_time_in_proportion_to_its_text(
    door: Callable[[qrmem.Memory, str], Awaitable[object]], memory: qrmem.Memory
) -> None:
    slow = []
    await _spent_by(door, memory, "Ann")
    for unit in UNITS:
        tries = []
        for _ in range(TRIES):
            found: list[float] = []
            for size in SIZES:
                found.append(await _spent_by(door, memory, text_of(unit, size)))
                if len(found) > 1 and found[-1] > FLOOR and found[-1] > MOST * found[-2]:
                    tries.append(found)
                    break
            else:
                break
        slow += [(unit, tries[-1])] if len(tries) == TRIES else []
    assert slow == []


async def _spent_by(
    door: Callable[[qrmem.Memory, str], Awaitable[object]], memory: qrmem.Memory, text: str
) -> float:
    began = time.process_time()
    with contextlib.suppress(QrmemError):
        await door(memory, text)
    return time.process_time() - began


def _of(kind: str) -> Callable[[str], object]:
    return lambda text: files.from_bytes(text.encode(), f"a.{kind}")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


FILES: dict[str, Callable[[str], object]] = {
    **{kind: _of(kind) for kind in ("txt", "md", "html", "csv", "tsv", "json", "py", "js", "rst")},
    "front matter": lambda text: files.from_bytes(
        f"---\ndate: {text}\n{text}: a\n---\nAnn.".encode(), "a.md"
    ),
    "page of tags": lambda text: files.from_bytes(f"<html>{text}</html>".encode(), "a.html"),
    "pdf": lambda text: files.from_bytes(
        pdf(text.encode("latin-1", "replace").decode("latin-1")), "a.pdf"
    ),
    "docx": lambda text: files.from_bytes(
        docx_of(f"<w:p><w:r><w:t>{_escaped(text)}</w:t></w:r></w:p>"), "a.docx"
    ),
    "epub": lambda text: files.from_bytes(
        epub_file(c1=f"<html><body><p>{_escaped(text)}</p></body></html>"), "a.epub"
    ),
    "xlsx": lambda text: files.from_bytes(
        sheet_of(f'<row><c t="inlineStr"><is><t>{_escaped(text)}</t></is></c></row>'), "a.xlsx"
    ),
}


@pytest.mark.parametrize("kind", FILES)
def test_a_file_takes_time_in_proportion_to_its_length(kind: str) -> None:
    assert too_slow(FILES[kind]) == []


def test_a_schema_takes_time_in_proportion_to_its_length(tmp_path: Path) -> None:
    path = tmp_path / "schema.toml"

    def load(text: str) -> None:
        path.write_text(f"[entities.Boat]\ndescription = {json.dumps(text)}\n", encoding="utf-8")
        load_schema(path)

    assert too_slow(load) == []
