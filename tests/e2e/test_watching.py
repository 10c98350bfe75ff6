"""A terminal shows an answer while the model writes it; a pipe gets only the result."""

import os
import pty
import subprocess

from e2e.conftest import Shell
from servers.openai_server import OpenAIServer, in_thread

QUESTION = "Who lost a leg near Japan?"


def seen_on_a_terminal(shell: Shell, *words: str) -> tuple[str, str]:
    """Run a command whose standard error is a terminal; return both outputs."""
    ours, theirs = pty.openpty()
    try:
        done = subprocess.Popen(
            shell.command(*words),
            cwd=shell.folder,
            env=shell.environment,
            stdout=subprocess.PIPE,
            stderr=theirs,
        )
        os.close(theirs)
        seen = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # Linux reports it when the other end is closed
                break
            if not piece:
                break
            seen += piece
        out, _ = done.communicate(timeout=120)
    finally:
        os.close(ours)
    return out.decode(), seen.decode()


def test_words_are_shown_on_a_terminal_as_they_are_written(qrmem: Shell) -> None:
    qrmem.write("a.txt", "Ahab lost a leg near Japan. He hunts the whale.")
    with in_thread(OpenAIServer()) as server:
        model = ["--model", "test", "--base-url", server.url]
        assert qrmem("add", "a.txt", *model).code == 0
        out, seen = seen_on_a_terminal(qrmem, "ask", QUESTION, "--stream", *model)
        assert "reasoning: The passages" in seen
        assert "Ahab lost a leg near Japan." in seen.partition("answer: ")[2]
        assert "Ahab lost a leg near Japan." in out
        for quiet in (["--json"], ["--quiet"], []):
            piped = qrmem("ask", QUESTION, "--stream", "--namespace", "default", *quiet, *model)
            assert piped.code == 0, piped.err
            assert "answer:" not in piped.err
