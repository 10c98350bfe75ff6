"""Two files of one name are two documents, by whatever command they come."""

import os

import pytest
from e2e.conftest import Shell
from e2e.test_bad_input import assert_one_line


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


def test_a_file_that_moved_is_the_document_that_it_was(qrmem: Shell) -> None:
    _notes(qrmem)
    assert qrmem("add", "x/notes.txt").code == 0
    (qrmem.folder / "x/notes.txt").rename(qrmem.folder / "y/notes.txt")
    assert qrmem("add", "y/notes.txt", "--json").json["unchanged"] == ["notes.txt"]
    qrmem.write("y/notes.txt", "Nell is a ship.")
    assert_one_line(qrmem("add", "y/notes.txt"), 2, "x/notes.txt", "y/notes.txt", "--id ID")
    assert qrmem("add", "y/notes.txt", "--update", "--json").json["updated"] == ["notes.txt"]
    absolute = str(qrmem.folder / "y/notes.txt")
    qrmem.write("y/notes.txt", "Nell is a brig.")
    assert qrmem("add", absolute, "--update", "--json").json["updated"] == ["notes.txt"]


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
