"""A memory as Markdown notes: links lead somewhere, hostile names and texts do no harm."""

import os
import re
import stat
import unicodedata
from pathlib import Path

import pytest
import yaml

import qrmem
from qrmem.errors import UsageError
from qrmem.io.notes import Contents, made_of, plain, write_notes
from qrmem.types import DocumentInfo, Entity, FactView, MetaValue, Property, Segment

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
    ends = {f"s{n}:0": (f"e{n}", f"e{(n - 1) % len(HOSTILE)}") for n in range(len(HOSTILE))}
    return Contents("[[t]]", documents, segments, entities, facts, ends)


def test_hostile_names_stay_in_the_folder_and_stay_distinct() -> None:
    notes = made_of(hostile())
    assert len(notes) == 1 + 2 * len(HOSTILE)
    assert len({name.casefold() for name in notes}) == len(notes)
    for name in notes:
        assert re.fullmatch(r'(documents/|entities/)?[^/\\:*?"<>|#^\[\]\x00-\x1f]+\.md', name), name
        assert len(name.rpartition("/")[2].encode()) <= 255
        assert not re.match(r"(documents|entities)/(\.|CON\.|nul\.)", name)


def test_one_letter_in_two_forms_is_one_file_name() -> None:
    """Some file systems take them for one."""
    documents = [
        DocumentInfo(f"d{n}", name, {}, 1, 1, {}) for n, name in enumerate(("\xe9", "e\u0301"))
    ]
    notes = made_of(Contents("t", documents, [], [], []))
    assert len({unicodedata.normalize("NFD", name.casefold()) for name in notes}) == 3


def test_front_matter_says_what_the_document_is_called_and_no_more() -> None:
    value = "a\x80b\x85c\u2028---\u2029d\ufeff\x7f"
    told: dict[str, MetaValue] = {
        "id": "forged",
        "x: 1\n---\n# Owned [[evil]]": "v",
        "tags: [a]\nid": value,
        "year": 1851,
    }
    documents = [DocumentInfo("mine", "T", told, 1, 1, {})]
    note = made_of(Contents("t", documents, [], [], []))["documents/T.md"]
    start, front, rest = note.split("---\n", 2)
    assert (start, rest.split()) == ("", ["#", "T"])
    assert yaml.safe_load(front) == {**told, "id": "mine"}
    assert "\nyear: 1851\n" in front
    assert front.splitlines() == front.removesuffix("\n").split("\n")


def test_no_field_of_a_forged_archive_begins_a_line_of_its_own() -> None:
    lie = "\n\n# Owned\n- [[evil]]"
    entity = Entity("e", "Ann", "", (("Ann", 1),), ("s",), (), (Property(f"age{lie}", lie, "s"),))
    fact = FactView(
        *("s:0", "Ann", f"Bo{lie}", f"knows{lie}", "d", "s", "Ann knows Bo."),
        *(f"2026{lie}"[:10], f"2026{lie}", f"2027{lie}", "s:1", "2026-01-01"),
        then=lie,
    )
    segments = [Segment("s", "d", 0, 0, 1, "Ann knows Bo.", 1)]
    documents = [DocumentInfo("d", "d", {}, 1, 1, {})]
    ends = {"s:0": ("e", "b")}
    note = made_of(Contents("t", documents, segments, [entity], [fact], ends))["entities/Ann.md"]
    assert not re.search(r"(?m)^(# Owned|- \[\[evil)", note)


def test_two_entities_of_one_name_have_notes_of_their_own() -> None:
    """A schema may have Jordan the person and Jordan the place."""
    person, place = (
        Entity(f"jordan|{type}", "Jordan", type, (("Jordan", 2),), ("s",), (), properties)
        for type, properties in (
            ("PERSON", tuple(Property("born", year, "s") for year in (1990, 1991, 1990))),
            ("PLACE", ()),
        )
    )
    asia = Entity("asia|PLACE", "Asia", "PLACE", (("Asia", 1),), ("s",))
    facts = [
        FactView("s:0", "Jordan", "Asia", "lies in", "d", "s", "Jordan lies in Asia.", type="IN_A"),
        FactView("s:1", "Jordan", "Jordan", "crossed", "d", "s", "Jordan crossed Jordan."),
    ]
    segments = [Segment("s", "d", 0, 0, 1, "Jordan crossed Jordan.", 1)]
    documents = [DocumentInfo("d", "d", {}, 1, 1, {})]
    ends = {"s:0": (place.key, asia.key), "s:1": (person.key, place.key)}
    entities = [asia, person, place]
    notes = made_of(Contents("t", documents, segments, entities, facts, ends))
    one, other = notes["entities/Jordan.md"], notes["entities/Jordan (2).md"]
    assert "lies in" not in one
    assert "- born: 1990 [[documents/d#^s1|d 1]]; before: 1991 [[documents/d#^s1|d 1]]\n" in one
    assert "- → [[entities/Jordan (2)|Jordan]]: crossed" in one
    assert "- ← [[entities/Jordan|Jordan]]: crossed" in other
    assert "- → [[entities/Asia|Asia]] IN\\_A: lies in" in other
    assert "- ← [[entities/Jordan (2)|Jordan]] IN" in notes["entities/Asia.md"]


@pytest.mark.parametrize("linked", ["documents", "documents/d.md", ".qrmem-notes"])
def test_nothing_is_written_through_a_link_in_a_strangers_vault(
    linked: str, tmp_path: Path
) -> None:
    outside, vault = tmp_path / "outside", tmp_path / "vault"
    outside.mkdir()
    (vault / "documents").mkdir(parents=True)
    (outside / "d.md").write_text("mine")
    (vault / ".qrmem-notes").write_text("documents/d.md\n")
    if linked == "documents":
        (vault / linked).rmdir()
    (vault / linked).unlink(missing_ok=True)
    (vault / linked).symlink_to(outside if linked == "documents" else outside / "d.md")
    contents = Contents("t", [DocumentInfo("d", "d", {}, 1, 1, {})], [], [], [])
    if linked == "documents/d.md":
        write_notes(vault, contents)
        assert (vault / linked).is_symlink()
        assert (vault / "documents" / "d (2).md").is_file()
    else:
        with pytest.raises(UsageError):
            write_notes(vault, contents)
    assert [path.read_text() for path in outside.iterdir()] == ["mine"]


def test_a_forged_list_of_notes_removes_nothing_else(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (tmp_path / "mine.md").write_text("mine")
    names = [
        "../mine.md",
        "documents/../../mine.md",
        "..\\mine.md",
        "a\0.md",
        str(tmp_path / "mine.md"),
    ]
    (vault / ".qrmem-notes").write_bytes("\n".join(names).encode() + b"\n\xff\xfe.md\n")
    write_notes(vault, Contents("t", [], [], [], []))
    assert (tmp_path / "mine.md").read_text() == "mine"


async def test_notes_of_ones_own_are_never_replaced_or_deleted(tmp_path: Path) -> None:
    vault = tmp_path / "v"
    async with qrmem.open(":memory:", embedder="none") as memory:
        await memory.add_text("Ann Holt lives in Oslo.", id="a")
        await memory.markdown(vault)
        mine = [vault / "entities" / "zurich.md", vault / "documents" / "b.md", vault / "Diary.md"]
        for path in mine:
            path.write_text("mine")
        oslo = vault / "entities" / "Oslo.md"
        oslo.write_text(oslo.read_text() + "\nMy remark.\n")
        await memory.add_text("Ann Holt moved to Zurich. Zurich is large.", id="b")
        await memory.markdown(vault)
        assert {"entities/Zurich (2)", "entities/Oslo (2)", "documents/b (2)"} <= targets(vault)
        first = {path: path.read_bytes() for path in vault.rglob("*.md")}
        await memory.markdown(vault)
        assert {path: path.read_bytes() for path in vault.rglob("*.md")} == first
        await memory.delete("b")
        await memory.markdown(vault)
        assert not (vault / "entities" / "Zurich (2).md").exists()
        assert [path.read_text() for path in mine] == ["mine"] * 3
        await memory.delete("a")
        await memory.markdown(vault)
        assert oslo.read_text().endswith("My remark.\n"), "an edited note is the user's"


@pytest.mark.parametrize("name", ["index.md", "documents/d.md"])
@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "link"])
def test_what_is_no_file_stays_and_holds_nothing_up(name: str, kind: str, tmp_path: Path) -> None:
    contents = Contents("t", [DocumentInfo("d", "d", {}, 1, 1, {})], [], [], [])
    write_notes(tmp_path, contents)
    place = tmp_path / name
    place.unlink()
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        os.mknod(place, stat.S_IFSOCK | 0o600)
    elif kind == "folder":
        place.mkdir()
    else:
        place.symlink_to("/dev/zero")
    before = place.lstat()
    assert write_notes(tmp_path, contents) == 2
    assert write_notes(tmp_path, Contents("t", [], [], [], [])) == 1
    assert place.lstat() == before or kind == "folder"
    assert list(tmp_path.glob("*.part")) == []


def test_an_export_that_was_killed_leaves_no_note_behind(tmp_path: Path) -> None:
    """The list is written first, so the next export knows the notes of both."""
    old = Contents("t", [DocumentInfo("d", "old", {}, 1, 1, {})], [], [], [])
    new = Contents("t", [DocumentInfo("d", "new", {}, 1, 1, {})], [], [], [])
    write_notes(tmp_path, old)
    lines = (tmp_path / ".qrmem-notes").read_text()
    write_notes(tmp_path, new)
    (tmp_path / ".qrmem-notes").write_text(lines + (tmp_path / ".qrmem-notes").read_text())
    (tmp_path / "documents" / "old.md").write_text(made_of(old)["documents/old.md"])
    write_notes(tmp_path, new)
    assert sorted(p.name for p in tmp_path.rglob("*.md")) == ["index.md", "new.md"]


def test_no_text_becomes_a_link_a_tag_or_a_heading() -> None:
    for text in made_of(hostile()).values():
        for target, label in LINK.findall(text):
            assert target.startswith(("documents/", "entities/")), (target, label)
        assert "<b>" not in re.sub(r"\\<", "", text)
        assert not re.search(r"(?m)^# (no|him)", text)
        assert not re.search(r"(?m)^- no", text)
    assert plain("1. a") == "\\1. a"


@pytest.mark.parametrize("way", ["markdown", "export", "graphml", "load"])
async def test_a_path_with_a_nul_character_is_refused_in_one_line(way: str) -> None:
    async with qrmem.open(":memory:", embedder="none") as memory:
        await memory.add([{"id": "a", "text": "Ann Holt lives in Oslo."}])
        with pytest.raises(UsageError, match="NUL"):
            await getattr(memory, way)("a\0b")
