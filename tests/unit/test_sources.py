"""Sources that `add` accepts and refuses, before it reads or writes anything."""

import asyncio
import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import qrmem
from qrmem.cli.parsed_arguments import pairs
from qrmem.errors import BadDocument
from qrmem.io.sources import documents, identified
from qrmem.text import files
from qrmem.types import Document

GOOD: dict[str, Any] = {"text": "Ada met Babbage.", "title": "A", "id": "a"}


async def test_other_tasks_have_a_turn_while_many_documents_are_checked() -> None:
    done = 0

    async def other() -> None:
        nonlocal done
        while True:
            done += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    before = done
    found = [one async for one in documents({**GOOD, "id": f"d{n}"} for n in range(1_000))]
    beside.cancel()
    assert len(found) == 1_000
    assert done - before > 10


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"metadata": {"year": float("nan")}}, "'year' of a is nan"),
        ({"metadata": {"year": float("inf")}}, "'year' of a is inf"),
        ({"metadata": {"year": float("-inf")}}, "'year' of a is -inf"),
        ({"metadata": {"year": 2**63}}, "'year' of a is a whole number that is too large"),
        ({"metadata": {"tags": ["x", 1]}}, "'tags' of a is a list"),
        ({"metadata": {"tags": ["x"] * 1001}}, "a list of 1,001; at most 1,000"),
        ({"metadata": {"user": ["ann"]}}, "user must be text, not list"),
        ({"metadata": {1: "x"}}, "metadata 1 of a"),
        ({"metadata": ["year"]}, "not a list"),
        ({"metadata": None}, "not a NoneType"),
        ({"text": 5}, "text must be text, not int"),
        ({"title": None}, "title must be text"),
        ({"title": "T" * 1_001}, "a: a title has at most 1,000 characters, not 1,001"),
        ({"id": 7}, "id must be text"),
    ],
)
def test_values_that_cannot_be_stored_are_refused_by_name(
    changes: dict[str, Any], word: str
) -> None:
    with pytest.raises(BadDocument) as caught:
        identified(Document(**{**GOOD, **changes}))
    assert word in str(caught.value)


def test_a_long_heading_gives_a_title_that_leaves_room(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"# {'Harbour ' * 10_000}\n\nAda met Babbage.\n")
    assert len(identified(files.read(tmp_path / "a.md")).title) < 1_001


def test_text_in_metadata_is_cleaned_like_all_text() -> None:
    kept = identified(Document(**GOOD, metadata={"a\x00b": "one\ud800two\r\n", "n": 3, "t": True}))
    assert kept.metadata == {"a b": "one\ufffdtwo\n", "n": 3, "t": True}


async def test_a_document_is_found_by_its_id_in_either_form_of_unicode() -> None:
    composed, decomposed = "caf\u00e9.md", "cafe\u0301.md"
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add({"id": decomposed, "text": "Ada met Babbage."})
        for id in (composed, decomposed):
            assert (await memory.document(id)).id == composed
            assert await memory.segments(document=id)
            assert await memory.search("Ada", documents=[id])
            assert (await memory.ask("Who met Babbage?", documents=[id])).citations
            assert await memory.trees(id) == []
            assert (await memory.plan(tree=[id])).documents == 1
        await memory.delete(decomposed)
        assert not await memory.documents()


@pytest.mark.parametrize("name", ["code", "chat", "turn", "language", "source"])
async def test_metadata_of_a_user_never_decides_how_a_document_is_read(name: str) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add({"id": "a", "text": "Ada met Babbage.", "metadata": {name: "python"}})
        assert (await memory.entity("Babbage")).segments
        assert await memory.search("Ada", where={name: "python"})


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("1851", 1851),
        ("-3", -3),
        ("1.5", 1.5),
        ("true", True),
        ("false", False),
        ("007", "007"),
        ("1_000", "1_000"),
        ("1.50", "1.50"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("1e400", "1e400"),
        ("Infinity", "Infinity"),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_a_word_is_a_number_only_where_it_is_written_as_one(word: str, value: object) -> None:
    assert pairs([f"key={word}"], "--meta") == {"key": value}
    assert type(pairs([f"key={word}"], "--meta")["key"]) is type(value)


async def test_a_folder_that_cannot_be_looked_through_is_named_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("open", "shut"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(GOOD["text"], encoding="utf-8")
    look = Path.iterdir

    def refuse(self: Path) -> Iterator[Path]:
        if self.name == "shut":
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return look(self)

    monkeypatch.setattr(Path, "iterdir", refuse)
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        report = await memory.add(tmp_path)
        assert report.added == ("open/a.txt",)
        (problem,) = report.problems
        assert f"{tmp_path / 'shut'} cannot be read: Permission denied" in str(problem)
        nothing = await memory.add(tmp_path / "shut")
        assert (nothing.added, len(nothing.problems)) == ((), 1)


async def test_a_path_that_cannot_be_looked_at_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(GOOD["text"], encoding="utf-8")
    impossible = tmp_path / ("x" * 300)
    async with qrmem.open("memory://", embedder="none", model="") as memory:
        report = await memory.add([impossible, tmp_path / "a.txt"])
        assert report.added == ("a.txt",)
        assert "cannot be read: File name too long" in str(report.problems)
        with pytest.raises(BadDocument, match="cannot be read: File name too long"):
            await memory.add(impossible)
