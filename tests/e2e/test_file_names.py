"""Two files of one name are two documents, with every command."""

import os
import shlex

import pytest
from e2e.conftest import Shell
from e2e.test_bad_input import assert_one_line

from qrmem.io.sources import FileDocument
from qrmem.memory.add_state import _ids


def _notes(qrmem: Shell) -> None:
    qrmem.write("x/notes.txt", "Nell is a boat.")
    qrmem.write("y/notes.txt", "Brig is a boat.")


def _kept(qrmem: Shell) -> dict[str, str]:
    """Return where each document is from, below the folder of the test."""
    listed = qrmem("list", "--json").json["documents"]
    return {one["id"]: os.path.relpath(one["metadata"]["source"], qrmem.folder) for one in listed}


BOTH = {"notes.txt": "x/notes.txt", "y/notes.txt": "y/notes.txt"}


@pytest.mark.parametrize("options", [(), ("--update",), ("--title", "Boats", "--update")])
def test_two_files_of_one_name_are_both_kept(qrmem: Shell, options: tuple[str, ...]) -> None:
    _notes(qrmem)
    assert qrmem("add", "x/notes.txt").code == 0
    assert qrmem("plan", "add", "y/notes.txt", "--json").json["documents"] == 1
    ran = qrmem("add", "y/notes.txt", *options, "--json")
    assert ran.json["added"] == ["y/notes.txt"]
    assert _kept(qrmem) == BOTH
    assert qrmem("add", "y/notes.txt", *options, "--json").json["unchanged"] == ["y/notes.txt"]
    qrmem.write("y/notes.txt", "Brig is a ship.")
    assert_one_line(qrmem("add", "y/notes.txt"), 2, "'y/notes.txt'", "--update")
    assert qrmem("add", "y/notes.txt", "--update", "--json").json["updated"] == ["y/notes.txt"]
    assert _kept(qrmem) == BOTH


def test_folders_with_files_of_one_name_are_all_kept(qrmem: Shell) -> None:
    _notes(qrmem)
    qrmem.write("a/y/notes.txt", "Dory is a boat.")
    ran = qrmem("add", "x", "y", "a/y", "--json")
    assert ran.code == 0
    assert ran.json["added"] == ["notes.txt", "y/notes.txt", "a/y/notes.txt"]
    again = qrmem("add", "a/y", "y", "x", "--update", "--json").json
    assert sorted(again["unchanged"]) == ["a/y/notes.txt", "notes.txt", "y/notes.txt"]
    assert not again["updated"]
    (qrmem.folder / "x/notes.txt").unlink()
    assert qrmem("add", "y", "--update", "--json").json["unchanged"] == ["y/notes.txt"]
    assert qrmem("export", "all.jsonl").code == 0
    assert qrmem("import", "all.jsonl", "--namespace", "copy").code == 0
    assert len(qrmem("list", "--namespace", "copy", "--json").json["documents"]) == 3


def test_one_file_is_one_document_from_whatever_folder_it_comes(qrmem: Shell) -> None:
    qrmem.write("all/x/notes.txt", "Nell is a boat.")
    qrmem.write("all/y/notes.txt", "Brig is a boat.")
    assert qrmem("add", "all/x/notes.txt", "--json").json["added"] == ["notes.txt"]
    ran = qrmem("add", "all", "--json").json
    assert (ran["added"], ran["unchanged"]) == (["y/notes.txt"], ["notes.txt"])
    qrmem.write("all/x/notes.txt", "Nell is a ship.")
    assert qrmem("add", "all", "--update", "--json").json["updated"] == ["notes.txt"]


def test_a_user_takes_no_file_of_another_over_by_its_text(qrmem: Shell) -> None:
    qrmem.write("a/n.txt", "Nell is a boat.")
    qrmem.write("b/n.txt", "Nell is a boat.")
    assert qrmem("add", "a/n.txt", "--meta", "user=ann").code == 0
    ran = qrmem("add", "b/n.txt", "--meta", "user=bob", "--update", "--json").json
    assert (ran["added"], ran["updated"]) == (["b/n.txt"], [])
    assert qrmem("chat", "forget-user", "bob", "--yes").code == 0
    assert _kept(qrmem) == {"n.txt": "a/n.txt"}


def test_a_file_whose_name_is_not_text_is_not_reported_as_missing(qrmem: Shell) -> None:
    for name in (b"c/\xff\xfe.txt", b"c/a\x1b[31mb.txt"):
        qrmem.write(os.fsdecode(name), f"Nell is a boat of {len(name)} oars.")
    assert qrmem("add", "c").code == 0
    ran = qrmem("add", "c", "--update")
    assert "no longer exist" not in ran.out + ran.err


def test_a_file_that_moved_is_the_document_that_it_was(qrmem: Shell) -> None:
    _notes(qrmem)
    assert qrmem("add", "x/notes.txt").code == 0
    (qrmem.folder / "x/notes.txt").rename(qrmem.folder / "y/notes.txt")
    assert qrmem("add", "y/notes.txt", "--json").json["unchanged"] == ["notes.txt"]
    moved = qrmem("add", "y/notes.txt", "--update", "--json").json
    assert (moved["updated"], moved["gone"]) == (["notes.txt"], [])
    qrmem.write("y/notes.txt", "Nell is a ship.")
    assert qrmem("add", "y/notes.txt", "--update", "--json").json["updated"] == ["notes.txt"]
    absolute = str(qrmem.folder / "y/notes.txt")
    qrmem.write("y/notes.txt", "Nell is a brig.")
    assert qrmem("add", absolute, "--update", "--json").json["updated"] == ["notes.txt"]


@pytest.mark.parametrize(
    "given",
    [
        ("y/notes.txt",),
        ("y/notes.txt", "--update"),
        ("y/notes.txt", "--title", "Boats", "--update"),
        ("y",),
        ("y", "--update"),
    ],
)
def test_a_document_whose_file_is_gone_is_not_replaced_by_another_of_its_name(
    qrmem: Shell, given: tuple[str, ...]
) -> None:
    _notes(qrmem)
    assert qrmem("add", "x/notes.txt", "-n", "boats").code == 0
    (qrmem.folder / "x/notes.txt").unlink()
    ran = qrmem("add", *given, "-n", "boats")
    assert ran.code == 0
    assert "documents: 1 added" in ran.out
    assert "1 document is kept whose file no longer exists; to delete it:" in ran.out
    listed = qrmem("list", "--json", "-n", "boats").json["documents"]
    assert [one["id"] for one in listed] == ["notes.txt", "y/notes.txt"]
    # The command that was shown deletes this document and no other.
    command = ran.out.splitlines()[-1].split()
    assert command == ["qrmem", "delete", "-n", "boats", "notes.txt"]
    assert qrmem(*command[1:], "--yes").code == 0
    again = qrmem("add", *given, "-n", "boats", "--json").json
    assert (again["unchanged"], again["gone"]) == (["y/notes.txt"], [])


def test_a_file_above_all_folders_has_an_id_too() -> None:
    found = FileDocument("A boat.", id="notes.txt", metadata={"source": "/notes.txt"})
    assert list(_ids(found)) == ["notes.txt", "/notes.txt"]


def test_documents_whose_files_were_deleted_are_named_and_kept(qrmem: Shell) -> None:
    for name in ("a", "b", "c d", "-e"):
        qrmem.write(f"x/{name}.txt", f"{name} is a boat.")
    qrmem.write("elsewhere.txt", "Brig is a boat.")
    assert qrmem("add", "x", "elsewhere.txt").code == 0
    for name in ("x/b.txt", "x/c d.txt", "elsewhere.txt"):
        (qrmem.folder / name).unlink()
    assert "no longer exist" not in qrmem("add", "x").out  # nothing is to be brought up to date
    ran = qrmem("add", "x", "--update")
    assert ran.code == 0
    assert "2 documents are kept whose files no longer exist; to delete them:" in ran.out
    assert ran.out.splitlines()[-1].strip() == "qrmem delete b.txt 'c d.txt'"
    assert len(qrmem("list", "--json").json["documents"]) == 5
    (qrmem.folder / "x/-e.txt").unlink()
    ran = qrmem("add", "x", "--update")
    command = shlex.split(ran.out.splitlines()[-1])
    assert command == ["qrmem", "delete", "--", "-e.txt", "b.txt", "c d.txt"]
    assert qrmem("delete", "--yes", *command[2:]).code == 0
    assert "no longer exist" not in qrmem("add", "x", "--update").out


def test_a_hint_about_a_file_of_a_folder_offers_no_id(qrmem: Shell) -> None:
    _notes(qrmem)
    assert qrmem("add", "x").code == 0
    qrmem.write("x/notes.txt", "Nell is a ship.")
    assert_one_line(qrmem("add", "x/notes.txt"), 2, "--id ID (id=) keeps both", "--update")
    in_folder = qrmem("add", "x")
    assert in_folder.code == 2
    assert "--update" in in_folder.out
    assert "--id" not in in_folder.out


def test_passages_of_two_files_of_one_name_say_which_file_they_are_from(qrmem: Shell) -> None:
    _notes(qrmem)
    for folder, boat in (("x", "Nell"), ("y", "Brig")):
        qrmem.write(f"{folder}/plan.md", f"# Plan\n{boat} is a boat of Oslo.")
    assert qrmem("add", "x", "y").code == 0
    for command in ("search", "ask"):
        shown = qrmem(command, "Which boat is of Oslo?").out
        assert "Plan · Plan" in shown
        assert "Plan (y/plan.md) · Plan" in shown
    for name in ("plan.md", "y/plan.md", "notes.txt", "y/notes.txt"):
        qrmem("delete", name, "--yes")
    assert qrmem("add", ".", "--glob", "*/notes.txt").code == 0
    for command in ("search", "ask"):
        shown = qrmem(command, "Which boat is there?").out
        assert "x/notes.txt" in shown
        assert "y/notes.txt" in shown


@pytest.mark.parametrize("option", ["--id", "--title"])
def test_a_name_that_is_given_twice_is_refused(qrmem: Shell, option: str) -> None:
    _notes(qrmem)
    ran = qrmem("add", "x/notes.txt", option, "a", option, "b")
    assert_one_line(ran, 2, f"{option} is given twice")
    assert qrmem("add", "x/notes.txt", option, "a").code == 0


def test_an_id_that_was_given_never_grows(qrmem: Shell) -> None:
    _notes(qrmem)
    assert qrmem("add", "x/notes.txt").code == 0
    ran = qrmem("add", "y/notes.txt", "--id", "notes.txt")
    assert_one_line(ran, 2, "x/notes.txt", "y/notes.txt", "--id ID")


def test_files_of_one_name_in_two_folders_are_two_from_within_these_folders_too(
    qrmem: Shell,
) -> None:
    _notes(qrmem)
    memory = str(qrmem.folder / "m.db")
    in_x, in_y = Shell(qrmem.folder / "x"), Shell(qrmem.folder / "y")
    assert in_x("add", "notes.txt", "--memory", memory).code == 0
    ran = in_y("add", "notes.txt", "--update", "--memory", memory, "--json")
    assert ran.json["added"] == ["y/notes.txt"]
    listed = qrmem("list", "--memory", memory, "--json").json["documents"]
    x, y = (str(qrmem.folder / path) for path in BOTH.values())
    assert {one["id"]: one["metadata"]["source"] for one in listed} == {
        "notes.txt": x,
        "y/notes.txt": y,
    }
    ran = in_y("add", "notes.txt", "--id", "notes.txt", "--memory", memory)
    assert_one_line(ran, 2, x, y, "--id ID")
