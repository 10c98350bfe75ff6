"""Output that fails: a full disk, a closed pipe, an encoding that lacks a letter."""

import os
import resource
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from e2e.conftest import Shell

import qrmem as package
from qrmem.cli.serving import write_trail
from qrmem.errors import StoreUnavailable
from qrmem.eval.registry import build
from qrmem.memory import Memory

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full here")


def written_to(shell: Shell, place: Path, *words: str, stderr: bool = False) -> tuple[int, str]:
    """Run a command with one of its outputs at a place; return exit code and the other output."""
    with place.open("wb") as out:
        done = subprocess.run(
            shell.command(*words),
            cwd=shell.folder,
            env=shell.environment,
            stdout=subprocess.PIPE if stderr else out,
            stderr=out if stderr else subprocess.PIPE,
            timeout=120,
        )
    return done.returncode, (done.stdout if stderr else done.stderr).decode()


@needs_full
@pytest.mark.parametrize("words", [("search", "Nell"), ("status", "--json"), ("list",)])
def test_results_that_cannot_be_written_are_one_line(
    read_sample: Shell, words: tuple[str, ...]
) -> None:
    code, err = written_to(read_sample, FULL, *words)
    assert code == 1
    assert err.count("\n") == 1
    assert "standard output cannot be written: No space left on device" in err


@needs_full
def test_a_run_does_not_end_for_lack_of_its_remarks(qrmem: Shell) -> None:
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London in 1833.")
    code, out = written_to(qrmem, FULL, "add", "a.txt", stderr=True)
    assert code == 0
    assert "1 added" in out


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
def test_a_run_does_not_end_for_streams_that_are_closed(qrmem: Shell, closed: str) -> None:
    qrmem.write("a.txt", "Ada Lovelace met Charles Babbage in London in 1833.")
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *qrmem.command("add", "a.txt")],
        cwd=qrmem.folder,
        env=qrmem.environment,
        stdout=subprocess.PIPE,
        timeout=120,
    )
    assert done.returncode == 0
    assert b"qrmem:" not in done.stdout
    assert qrmem("status", "--json").json["states"] == {"ok": 1}


def test_a_question_that_nobody_can_answer_is_refused_where_the_input_is_closed(
    read_sample: Shell,
) -> None:
    done = subprocess.run(
        ["sh", "-c", '"$@" <&-', "sh", *read_sample.command("delete", "--all")],
        cwd=read_sample.folder,
        env=read_sample.environment,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 2
    assert b"without a terminal, delete needs --yes" in done.stderr


def test_letters_that_an_output_lacks_are_escaped(qrmem: Shell) -> None:
    qrmem.write("a.txt", "Zoë Čapek met Ægir in Łódź.")
    assert qrmem.apart("add", "a.txt", PYTHONIOENCODING="ascii").code == 0
    ran = qrmem.apart("ask", "Who met Ægir?", PYTHONIOENCODING="ascii")
    assert ran.code == 0
    assert "Zo\\xeb" in ran.out


def test_a_word_of_the_command_line_that_is_no_text_is_shown_escaped(qrmem: Shell) -> None:
    qrmem.write("a.txt", "Ada met Babbage.")
    assert qrmem("add", "a.txt").code == 0
    ran = qrmem("ask", "Who met B\udcffabbage?", "--json")
    assert ran.code == 0, ran.err
    assert ran.json["status"] in {"passages", "unanswerable"}
    ran = qrmem("show", "B\udcff\x1b[31m")
    assert ran.code == 2
    assert "\x1b" not in ran.err
    assert ran.err.count("\n") == 1


# --- files ---------------------------------------------------------------------------------------

TEXT = "Ada Lovelace met Charles Babbage in London. " * 60


@contextmanager
def no_room() -> Iterator[None]:
    """Let no file grow beyond 1 KB, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def page(memory: Memory, path: Path) -> None:
    await write_trail(memory, await memory.trail(), str(path))


async def graph(memory: Memory, path: Path) -> None:
    await memory.graphml(path, overwrite=True)


async def archive(memory: Memory, path: Path) -> None:
    await memory.export(path, overwrite=True)


async def data_set(_: Memory, path: Path) -> None:
    text = path.parent.parent / "hay.txt"
    options = ("needles=The code is 7.", "keywords=7", "length=1k", "cases=2")
    build("niah", text, path, options)


@pytest.mark.parametrize("write", [page, graph, archive])
async def test_files_of_a_killed_run_are_deleted_and_files_of_a_running_one_stay(
    write: Callable[[Memory, Path], Awaitable[None]], tmp_path: Path
) -> None:
    left, written = (tmp_path / f".made.{digit * 8}.part" for digit in "01")
    for part, age in ((left, 3600), (written, 5)):
        part.write_bytes(b"text")
        os.utime(part, (time.time() - age, time.time() - age))
    async with package.open("memory://", embedder="none", model="") as memory:
        await memory.add({"id": "note", "text": TEXT})
        await memory.ask("Whom did Ada Lovelace meet?")
        await write(memory, tmp_path / "made")
    assert sorted(os.listdir(tmp_path)) == [written.name, "made"]


async def test_a_full_disk_leaves_no_empty_memory(tmp_path: Path) -> None:
    with no_room(), pytest.raises(StoreUnavailable, match="nothing that was saved is lost"):
        await package.open(str(tmp_path / "m.db"), embedder="none", model="")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("write", [page, graph, archive, data_set])
async def test_a_full_disk_leaves_an_existing_output_unchanged(
    write: Callable[[Memory, Path], Awaitable[None]], tmp_path: Path
) -> None:
    place = tmp_path / "outputs"
    place.mkdir()
    (tmp_path / "hay.txt").write_text(TEXT * 30, encoding="utf-8")
    async with package.open("memory://", embedder="none", model="") as memory:
        await memory.add({"id": "note", "text": TEXT})
        await memory.ask("Whom did Ada Lovelace meet?")
        with no_room(), pytest.raises(StoreUnavailable) as refused:
            await write(memory, place / "made")
        assert list(place.iterdir()) == []
        assert "\n" not in str(refused.value)
        await write(memory, place / "made")
        assert [path.name for path in place.iterdir()] == ["made"]
        if write is not data_set:  # a file of the same form is written over, and so replaced whole
            before = (place / "made").read_bytes()
            with no_room(), pytest.raises(StoreUnavailable):
                await write(memory, place / "made")
            assert (place / "made").read_bytes() == before


@pytest.mark.parametrize("words", [("trail", "--html"), ("export", "--graphml"), ("export",)])
def test_an_output_is_written_over_no_memory_and_into_no_pipe(
    read_sample: Shell, words: tuple[str, ...]
) -> None:
    assert read_sample("ask", "Who is Nell?").code == 0
    os.mkfifo(pipe := read_sample.folder / "pipe")
    before = read_sample("list", "--json").json
    for place in ("test.db", "pipe"):
        ran = read_sample(*words, place)
        assert ran.code == 2, ran.err
        assert "choose another name" in ran.err
        assert ran.err.count("\n") == 1
    pipe.unlink()
    assert read_sample("list", "--json").json == before
