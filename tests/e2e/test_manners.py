"""Typing mistakes and abbreviations on the command line."""

import asyncio
import json
import os
import re
import subprocess

import pytest
from e2e.conftest import SAMPLE, Ran, Shell

from qrmem import open as opened
from qrmem.cli.arguments import GROUPS
from qrmem.cli.parser import build_parser

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


def test_a_mistyped_strategy_is_answered_with_the_one_that_was_meant(qrmem: Shell) -> None:
    said = refused(qrmem("ask", "Who?", "--strategy", "reflexion"))
    assert "did you mean 'reflection'?" in said
    assert "graph-expansion" in said
    assert said.count("\n") == 1


def test_an_option_is_written_out_and_the_one_that_was_meant_is_named(qrmem: Shell) -> None:
    said = refused(qrmem("ask", "Who?", "--windo", "500"))
    assert "not understood: --windo 500; did you mean --window? (see qrmem ask --help)" in said
    # `search` has no window, so none is offered.
    said = refused(qrmem("search", "Who?", "--windo", "500"))
    assert "not understood: --windo 500 (see qrmem search --help)" in said
    assert "did you mean --kind?" in refused(qrmem("tree", "show", "--kin", "ilm"))


def test_a_command_that_lacks_something_says_what(qrmem: Shell) -> None:
    assert "qrmem add FILE" in refused(qrmem())
    assert "missing: question" in refused(qrmem("ask"))
    assert "missing: what to do (build or show)" in refused(qrmem("tree"))
    assert "--memory takes a value" in refused(qrmem("status", "-m"))
    assert "missing: what to plan (add, ask or tree)" in refused(qrmem("plan"))
    assert "qrmem tree takes build, show, not 'grow'" in refused(qrmem("tree", "grow"))


def test_a_missing_file_gets_one_line(qrmem: Shell) -> None:
    said = qrmem("add", "nope.txt")
    assert (said.code, said.err) == (2, "qrmem: no such file or folder: nope.txt\n")
    assert "built-in rules" in qrmem("add", "-", stdin=TEXT.encode()).err
    assert "built-in rules" not in qrmem("add", "-", stdin=TEXT.encode()).err


def test_a_document_that_is_not_there_needs_no_consent(qrmem: Shell) -> None:
    qrmem("add", "-", "-q", stdin=TEXT.encode())
    assert "no document 'nope'" in refused(qrmem("delete", "nope"))


def test_dropping_the_embedder_is_reported_in_words(qrmem: Shell) -> None:
    qrmem("add", "-", "-q", stdin=TEXT.encode())
    said = qrmem("reembed", "--embedder", "none")
    assert (said.code, said.out) == (
        0,
        "the vectors are deleted: search uses words and the graph\n",
    )


def test_only_near_names_are_offered(qrmem: Shell) -> None:
    qrmem("add", str(SAMPLE / "harbour.md"), "-q")
    assert refused(qrmem("show", "Nobody")) == "qrmem: no entity is called 'Nobody'\n"
    for meant, name in (("Elis Thorn", "Elias Thorne"), ("Garick", "Garrick")):
        assert name in refused(qrmem("show", meant))
    assert "Lucian Ashby" in refused(qrmem("show", "Ash"))


def test_filters_of_a_search_are_shown_as_given(qrmem: Shell) -> None:
    qrmem("add", "-", "-q", stdin=TEXT.encode())
    words = ("--where", "year=1851", "--where", "old=true")
    assert "the metadata year=1851, old=true" in refused(qrmem("search", "x", *words))
    assert "the query is empty" in refused(qrmem("search", ""))
    assert "shorten the question" in refused(qrmem("ask", "Who was it? " * 3000))


def test_a_trail_says_where_its_segments_stand_and_why_some_were_dropped(qrmem: Shell) -> None:
    qrmem("add", str(SAMPLE / "harbour.md"), "-q")
    asked = qrmem("ask", "What is the name of Martin Fenwick's pilot cutter?", "--json").json
    assert asked["trail"]["steps"][-1]["dropped"]
    assert asked["trail"]["steps"][-1]["verdict"] == "passages"
    shown = qrmem("trail").out
    assert "cited:" not in shown + qrmem("ask", "Who is Martin Fenwick?").out, "nothing is answered"
    assert "no room in the window → passages" in shown
    assert "harbour.md · Chapter 5: The Two Fenwicks" in shown
    assert "answered by built-in rules (local." in shown
    assert "closest passages (no chat model is set):\npassage 1: " in shown


def test_marks_of_a_tree_are_explained(qrmem: Shell) -> None:
    qrmem("add", str(SAMPLE / "harbour.md"), "-q")
    assert qrmem("tree", "build").code == 0
    lines = qrmem("tree", "show", "--depth", "1").out.splitlines()
    assert lines[1].startswith("  level 2, 10 segments: ")
    assert lines[2].startswith("    ! ")
    assert (
        lines[-1]
        == "! marks a surprise: a statement that does not follow from the rest of the text"
    )
    answered = qrmem("ask", "Who rang the bell?", "--strategy", "inner-loop").out.splitlines()
    assert "The Light at Skarrow · Chapter 7: The Tower without a Voice, characters " in answered[2]
    assert re.match(r"trail:  inner-loop, \d steps, \d+ sentences, .* read, ", answered[-1])
    assert "     1 tree with 36 nodes" in qrmem("trail").out.splitlines()


def test_merged_names_stand_below_their_reason_and_each_once(qrmem: Shell) -> None:
    qrmem("add", str(SAMPLE / "harbour.md"), "-q")
    lines = qrmem("show", "--merges").out.splitlines()
    assert lines[0] == "a short form, a title or another name:"
    assert len(lines) == len(set(lines)) > 10
    assert lines.count("  Lucian → Lucian Ashby") == 1
    told = [(one["name"], one["into"]) for one in qrmem("show", "--merges", "--json").json]
    assert len(told) == len(set(told)) == len(lines) - 2, "the page shows these"
    assert not [name for name, into in told if name == into], "none can be kept apart from itself"
    qrmem("merge", "Tam", "Tam Garrick", "-q")
    lines = qrmem("show", "--merges").out.splitlines()
    assert lines[lines.index("by hand:") + 1].startswith("  Tam")


def test_help_shows_a_command(qrmem: Shell) -> None:
    assert "--strategy" in qrmem("help", "ask").out
    assert "FILE|-" in qrmem("help", "chat", "add").out
    assert "\nAnswer a question, with citations.\n" in qrmem("ask", "--help").out
    assert "\nShow trees as an outline.\n" in qrmem("tree", "show", "--help").out
    assert "search" in qrmem("help").out


def test_a_web_address_and_a_text_are_no_files(qrmem: Shell) -> None:
    assert "only addresses with http" in refused(qrmem("add", "ftp://example.org/book.txt"))
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


def test_an_answer_has_one_line_of_trail_unless_more_is_asked_for(qrmem: Shell) -> None:
    qrmem("add", "-", "-q", stdin=TEXT.encode())
    question = "Whom did Ada Lovelace meet?"
    usual = qrmem("ask", question).out.splitlines()
    assert [line for line in usual if line.startswith(("trail:", "cost:"))] == usual[-1:]
    assert "1 segment read" in usual[-1]
    assert "no chat model was called" in usual[-1]
    identity = usual[-1].partition("qrmem trail ")[2].split()[0]
    assert qrmem("trail", identity, "--json").json["question"] == question
    whole = qrmem("ask", question, "--trail").out
    assert "trail:\n  1. start" in whole
    assert "\ncost: " in whole
    assert not any("trail" in line for line in qrmem("ask", question, "-q").out.splitlines())


def test_quiet_is_quiet_where_all_goes_well(qrmem: Shell) -> None:
    qrmem.write("a.txt", TEXT)
    for words in (
        ["add", "a.txt"],
        ["merge", "Ada Lovelace", "Countess Lovelace"],
        ["export", "a.zip"],
        ["chat", "say", "user", "Good morning."],
        ["init"],
        ["delete", "a.txt", "--yes"],
    ):
        ran = qrmem(*words, "-q")
        assert (ran.code, ran.out, ran.err) == (0, "", ""), words
    told = qrmem("search", "x", "-q", "--memory", "none.db")
    assert told.code == 2
    assert told.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "kind", "code"),
    [
        (["search", "x", "--memory", "none.db"], "NotFound", 2),
        (["serach", "x"], "UsageError", 2),
        (["ask", "x", "--window", "many"], "UsageError", 2),
        (["add", "missing.txt"], "BadDocument", 2),
        (
            ["add", "a.txt", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"],
            "ModelUnavailable",
            4,
        ),
        (["add", "a.txt", "--model", "m"], "MissingError", 3),
    ],
)
def test_an_error_is_one_json_object_on_standard_error_where_json_is_asked_for(
    qrmem: Shell, words: list[str], kind: str, code: int
) -> None:
    qrmem.write("a.txt", TEXT)
    ran = qrmem(*words, "--json", "-q")
    assert ran.code == code
    assert ran.out == ""
    said = json.loads(ran.err)
    assert set(said) == {"error", "kind", "exit"}
    assert (said["kind"], said["exit"]) == (kind, code)
    assert said["error"] in qrmem(*words, "-q").err


def test_a_command_takes_the_options_that_it_uses_and_tells_their_defaults(qrmem: Shell) -> None:
    listing = qrmem("help", "list").out
    assert "--memory" in listing
    assert "--model" not in listing
    assert qrmem("list", "--model", "m").code == 2
    asking = qrmem("help", "ask").out
    for group in ("chat model:", "documents:", "trail:", "replies:"):
        assert f"\n{group}" in asking
    adding = " ".join(qrmem("help", "add").out.split())
    assert "(default: 600)" in adding
    assert "(default: compact)" in adding
    assert "(default: 8)" in adding


@pytest.mark.parametrize(
    ("line", "offered"),
    [("qrmem se", {"search", "separate", "serve"}), ("qrmem ask --tr", {"--trail", "--trials"})],
)
def test_a_shell_completes_commands_and_options(qrmem: Shell, line: str, offered: set[str]) -> None:
    asks = {
        **qrmem.environment,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(qrmem.folder / "offered"),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run(qrmem.command(), cwd=qrmem.folder, env=asks, check=False, timeout=60)
    found = (qrmem.folder / "offered").read_text().split("\x0b")
    assert {word.strip() for word in found} == offered


@pytest.mark.parametrize(
    ("shell", "words"), [("bash", "complete "), ("zsh", "compdef"), ("fish", "complete ")]
)
def test_scripts_for_completion_are_printed(qrmem: Shell, shell: str, words: str) -> None:
    printed = qrmem("completion", shell)
    assert printed.code == 0
    assert words in printed.out
    assert "qrmem" in printed.out


def test_a_plan_of_a_question_to_an_empty_memory_says_that_it_is_empty(qrmem: Shell) -> None:
    async def make() -> None:
        async with opened(str(qrmem.folder / "test.db"), embedder="none") as memory:
            await memory.add_text(TEXT, id="note")
        # By another process: one that made the file and leaves nothing in it removes it.
        async with opened(str(qrmem.folder / "test.db"), embedder="none") as memory:
            await memory.delete("note")

    asyncio.run(make())
    assert "the memory is empty" in qrmem("plan", "ask", "Who?").out


def test_a_window_of_zero_is_that_of_the_model(qrmem: Shell) -> None:
    qrmem("add", "-", "-q", stdin=TEXT.encode())
    asked = qrmem("ask", "Whom did Ada Lovelace meet?", "--window", "0", "--json")
    assert asked.json["trail"]["window"] == 4096
    assert "at least 64" in refused(qrmem("ask", "Who?", "--window", "10"))


def test_the_help_has_every_command_in_a_group_and_three_examples(qrmem: Shell) -> None:
    (commands,) = (a for a in build_parser()._actions if a.dest == "command")
    named = [name for names in GROUPS.values() for name in names]
    assert sorted(named) == sorted(commands.choices or ())
    told = qrmem("--help").out
    assert told.count("\n  qrmem ") == 3
    assert all(f"\n  {title}:\n    {names[0]} " in told for title, names in GROUPS.items())
