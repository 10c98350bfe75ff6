"""A command that is interrupted or killed anywhere loses nothing, and the next one continues."""

import os
import pty
import random
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from e2e.conftest import SAMPLE, Ran, Shell
from servers.openai_server import Behaviour, OpenAIServer, in_thread

SLOW = Behaviour(latency=0.05)


def graph(shell: Shell) -> str:
    """Return the whole graph, in an order of its own."""
    assert shell("export", "graph.xml", "--graphml", "--force").code == 0
    return (shell.folder / "graph.xml").read_text()


def book(shell: Shell, chapters: int) -> Path:
    """Write the first chapters of the sample."""
    text = (SAMPLE / "harbour.md").read_text()
    return shell.write("book.md", "## ".join(text.split("## ")[: chapters + 1]))


def kill_after(shell: Shell, server: OpenAIServer, answers: int, *words: str) -> None:
    """Run a command and kill it once the server has answered so often."""
    until = server.stats.answered + answers
    process = subprocess.Popen(
        shell.command(*words), cwd=shell.folder, env=shell.environment, stderr=subprocess.DEVNULL
    )
    while server.stats.answered < until and process.poll() is None:
        time.sleep(0.005)
    process.kill()
    process.wait()


def test_a_killed_rebuild_is_continued(qrmem: Shell) -> None:
    path = book(qrmem, 3)
    with in_thread(OpenAIServer(behaviour=SLOW)) as server:
        using = ["--model", "test", "--base-url", server.url, "--quiet"]
        assert qrmem("add", "book.md", *using).code == 0
        first, asked = graph(qrmem), server.stats.answered
        kill_after(qrmem, server, 1, "add", "book.md", "--rebuild", *using)
        assert qrmem("list", "--json").json["documents"][0]["characters"] == len(path.read_text())
        kill_after(qrmem, server, asked // 2, "add", "book.md", *using)
        assert qrmem("add", "book.md", *using).code == 0
    assert "already read (by " in qrmem("add", "book.md").out
    assert graph(qrmem) == first


class Terminal:
    """Runs a command as if a person sat before it, who may press Ctrl-C."""

    def __init__(self, shell: Shell, *words: str) -> None:
        self._master, slave = pty.openpty()
        self.process = subprocess.Popen(
            shell.command(*words),
            cwd=shell.folder,
            env={**shell.environment, "TERM": "xterm"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(slave)
        self._seen = b""

    def press_ctrl_c(self, seconds: float) -> Ran:
        """Press Ctrl-C a while after the first line, and return what was shown."""
        select.select([self._master], [], [], 60)
        self._read_until(time.monotonic() + seconds)
        if self.process.poll() is None:
            os.write(self._master, b"\x03")
        return self.end()

    def end(self) -> Ran:
        """Wait for the end, and return what was shown."""
        self._read_until(time.monotonic() + 60)
        code = self.process.wait(timeout=10)
        os.close(self._master)
        return Ran(code, self._seen.decode(errors="replace"), "")

    def _read_until(self, deadline: float) -> None:
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self._master], [], [], min(left, 0.1))[0]:
                if self.process.poll() is not None:
                    return
                continue
            try:
                self._seen += os.read(self._master, 65536)
            except OSError:  # the other side is closed
                return


def _take_terminal() -> None:
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.mark.parametrize("tokens", ["600", "40"])
def test_ctrl_c_at_any_moment_changes_nothing_in_the_end(qrmem: Shell, tokens: str) -> None:
    qrmem.environment |= {"QRMEM_SEGMENT_TOKENS": tokens}
    drawn = random.Random(1)
    text = "\n\n".join(
        f"In {n} Anna Number{n % 97} met Bernard Other{n % 89} at Mill {n % 31}. " * 8
        for n in range(700)
    )
    qrmem.write("book.txt", text)
    assert qrmem("add", "book.txt", "--memory", "whole.db").code == 0
    shown = []
    for _ in range(5):
        ran = Terminal(qrmem, "add", "book.txt").press_ctrl_c(drawn.uniform(0.0, 2.0))
        shown.append(ran)
        # Python itself ends so if it was interrupted while it compiled something.
        assert ran.code in {0, 130, -signal.SIGINT}, ran.out
        assert "Traceback" not in ran.out
        if ran.code == 0:
            break
    assert any(ran.code == 130 and "to continue" in ran.out for ran in shown)
    assert Terminal(qrmem, "add", "book.txt").end().code == 0
    assert "already read (by " in qrmem("add", "book.txt").out
    mended = graph(qrmem)
    qrmem.environment["QRMEM_MEMORY"] = "whole.db"
    assert graph(qrmem) == mended
