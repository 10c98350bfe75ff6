"""A memory as Markdown notes: links lead somewhere, hostile names and texts do no harm."""

import os
import re
from pathlib import Path

import pytest

import qrmem
from qrmem.errors import UsageError
from qrmem.io.notes import Contents, made_of, plain
from qrmem.types import DocumentInfo, Entity, FactView, Segment

LINK = re.compile(r"(?<!\\)\[\[([^\]|]+)\|([^\]]+)\]\]")
TEXT = "Ada Lovelace met Charles Babbage in London. Charles Babbage lived in London."
HOSTILE = [
    *(
        "../../escape",
        "a/b\\c",
        "[[evil]]|x",
        "CON",
        "nul.txt",
        "...",
        "x" * 300,
        "𝔘" * 300,
        "<script>",
    ),
    *("Ann", "ann", "^#%", "line\nbreak", "名前", "\u202eright"),
]


def targets(folder: Path) -> set[str]:
    found = set()
    for note in folder.rglob("*.md"):
        for target, _ in LINK.findall(note.read_text()):
            page, _, mark = target.partition("#^")
            assert (folder / f"{page}.md").is_file(), target
            assert not mark or f" ^{mark}\n" in (folder / f"{page}.md").read_text()
            found.add(page)
    return found


async def test_notes_link_entities_statements_and_segments(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(
            {"id": "a", "title": "Ada", "text": TEXT, "metadata": {"at": "1833-06-05"}}
        )
        count = await memory.markdown(folder)
        assert count == len(list(folder.rglob("*.md")))
        assert {"documents/Ada", "entities/Charles Babbage"} <= targets(folder)
        note = (folder / "entities" / "Charles Babbage.md").read_text()
        assert "[[entities/Ada Lovelace|Ada Lovelace]]" in note
        assert "said 1833-06-05" in note
        first = {path: path.read_bytes() for path in folder.rglob("*.md")}
        (folder / "mine.md").write_text("my own note")
        await memory.markdown(folder)
        assert {path: path.read_bytes() for path in first} == first, "equal memories, equal bytes"
        await memory.delete("a")
        await memory.markdown(folder)
    assert sorted(path.name for path in folder.rglob("*.md")) == ["index.md", "mine.md"]


async def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add({"id": "a", "text": TEXT})
        with pytest.raises(UsageError, match="empty folder"):
            await memory.markdown(tmp_path)
        with pytest.raises(UsageError, match="is a file"):
            await memory.markdown(tmp_path / "letter.txt")
    assert os.listdir(tmp_path) == ["letter.txt"]


def hostile() -> Contents:
    text = "# no heading\n- no list\n[[no link]] <b>no tag</b>"
    documents = [DocumentInfo(f"d{n}", name, {}, 1, 1, {}) for n, name in enumerate(HOSTILE)]
    segments = [Segment(f"s{n}", f"d{n}", 0, 0, 1, text, 1) for n in range(len(HOSTILE))]
    entities = [
        Entity(f"e{n}", name, "", ((name, 1),), (f"s{n}",)) for n, name in enumerate(HOSTILE)
    ]
    facts = [
        FactView(f"s{n}:0", name, HOSTILE[n - 1], "knows\n# him", f"d{n}", f"s{n}", text)
        for n, name in enumerate(HOSTILE)
    ]
    return Contents("[[t]]", documents, segments, entities, facts)


def test_hostile_names_stay_in_the_folder_and_are_told_apart() -> None:
    notes = made_of(hostile())
    assert len(notes) == 1 + 2 * len(HOSTILE)
    assert len({name.casefold() for name in notes}) == len(notes)
    for name in notes:
        assert re.fullmatch(r'(documents/|entities/)?[^/\\:*?"<>|#^\[\]\x00-\x1f]+\.md', name), name
        assert len(name.rpartition("/")[2].encode()) <= 255
        assert not re.match(r"(documents|entities)/(\.|CON\.|nul\.)", name)


def test_no_text_becomes_a_link_a_tag_or_a_heading() -> None:
    for text in made_of(hostile()).values():
        for target, label in LINK.findall(text):
            assert target.startswith(("documents/", "entities/")), (target, label)
        assert "<b>" not in re.sub(r"\\<", "", text)
        assert not re.search(r"(?m)^# (no|him)", text)
        assert not re.search(r"(?m)^- no", text)
    assert plain("1. a") == "\\1. a"
