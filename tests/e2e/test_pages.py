"""Pages that teach: their commands run as they stand, and the site is built from them."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from e2e.conftest import ROOT, SAMPLE, Ran, Shell

from tools import cli_reference

DOCS = ROOT / "docs"
BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.DOTALL)


@pytest.mark.timeout(600)
def test_every_command_of_the_tutorial_runs(tmp_path: Path) -> None:
    blocks = BLOCK.findall((DOCS / "tutorial.md").read_text())
    assert len(blocks) > 5
    run = _runner(tmp_path, {"SAMPLE": str(SAMPLE)})
    said = []
    for kind, text in blocks:
        lines = text.splitlines() if kind == "sh" else [f"python -c {shlex.quote(text)}"]
        for line in lines:
            ran = run(line)
            assert ran.code == 0, f"{line}\n{ran.err}"
            said.append(ran.out)
    everything = "\n".join(said)
    for expected in ("Herring Key", "5 May", "Clara", "sum(prices)", "| reflection |"):
        assert expected in everything, expected


def _runner(folder: Path, more: Mapping[str, str]) -> Callable[[str], Ran]:
    """Return what runs a line of a page; a plain `qrmem …` runs in this process, to save time."""
    shell = Shell(folder)
    commands = folder / "bin"
    commands.mkdir()
    for name, words in (("qrmem", "-m qrmem "), ("python", "")):
        (commands / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words}"$@"\n')
        (commands / name).chmod(0o755)
    shell.environment |= {"PATH": f"{commands}:{os.environ['PATH']}", **more}

    def run(line: str) -> Ran:
        if line.startswith("qrmem ") and not re.search(r"[|&><;]", line):
            told = line.replace("$SAMPLE", more.get("SAMPLE", ""))
            return shell(*shlex.split(told)[1:])
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=folder,
            env=shell.environment,
            capture_output=True,
            text=True,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


def test_the_page_of_commands_is_that_of_the_program() -> None:
    assert cli_reference.PAGE.read_text() == cli_reference.page(), (
        "run python -m tools.cli_reference"
    )


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir"]
    ran = subprocess.run(
        [*command, str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    page = (tmp_path / "site" / "reference" / "api" / "index.html").read_text()
    assert "Answer a question" in page
    assert "max_trials" in page
