"""Pages that teach: their commands run as they stand, and the site is built from them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import cli_reference

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "qrmem" / "sample"
BLOCK = re.compile(r"```(sh|python)\n(.*?)```", re.DOTALL)


@pytest.mark.timeout(300)
def test_every_command_of_the_tutorial_runs(tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text())
    assert len(blocks) > 5
    commands = tmp_path / "bin"
    commands.mkdir()
    program = commands / "qrmem"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m qrmem "$@"\n')
    program.chmod(0o755)
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("QRMEM_", "OPENAI_", "NEO4J_"))
    }
    environment = {
        **kept,
        "PATH": f"{commands}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "SAMPLE": str(SAMPLE),
        "QRMEM_EMBEDDER": "none",
    }
    said = []
    for kind, text in blocks:
        command = ["bash", "-ec", text] if kind == "sh" else [sys.executable, "-c", text]
        ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, f"{text}\n{ran.stderr}"
        said.append(ran.stdout)
    everything = "\n".join(said)
    for expected in ("Herring Key", "5 May", "Clara", "sum(prices)"):
        assert expected in everything, expected


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
