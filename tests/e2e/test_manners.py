"""What a person types by mistake, or in short, and what the command makes of it."""

import os

from e2e.conftest import Ran, Shell

TEXT = "Ada Lovelace met Charles Babbage in London in 1833.\n"


def refused(ran: Ran) -> str:
    assert ran.code == 2
    return ran.err


def test_short_options_are_the_long_ones(qrmem: Shell) -> None:
    qrmem("add", "-", "-q", "-n", "notes", stdin=TEXT.encode())
    found = qrmem("search", "Who met Babbage?", "-k", "1", "-n", "notes", "--json")
    assert found.json[0]["text"] == TEXT


def test_a_question_comes_from_standard_input(qrmem: Shell) -> None:
    qrmem("add", "-", "-q", stdin=TEXT.encode())
    asked = qrmem("ask", "-", "--json", stdin=b"Whom did Ada Lovelace meet?\n")
    assert asked.json["trail"]["question"] == "Whom did Ada Lovelace meet?"


def test_a_mistyped_command_is_answered_with_the_one_that_was_meant(qrmem: Shell) -> None:
    ran = qrmem("serach", "x")
    assert ran.code == 2
    assert "did you mean 'search'?" in ran.err
    assert ran.err.count("\n") == 1


def test_help_shows_a_command(qrmem: Shell) -> None:
    assert "--strategy" in qrmem("help", "ask").out
    assert "search" in qrmem("help").out


def test_a_web_address_and_a_text_are_no_files(qrmem: Shell) -> None:
    assert "save the page" in refused(qrmem("add", "https://example.org/book.txt"))
    text = "This is a whole sentence that somebody gave as the name of a file."
    assert "add_text" in refused(qrmem("add", text))


def test_a_pipe_is_no_memory_and_no_list_of_prices(qrmem: Shell) -> None:
    os.mkfifo(qrmem.folder / "pipe")
    qrmem.write("a.txt", TEXT)
    assert "a pipe" in refused(qrmem("add", "a.txt", "--memory", "pipe"))
    assert "a pipe" in refused(qrmem("search", "Babbage", "--memory", "pipe"))
    assert "a pipe" in refused(
        qrmem("add", "a.txt", "--model", "m", "--prices", "pipe", OPENAI_API_KEY="k")
    )
