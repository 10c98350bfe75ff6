"""What building short passages costs, with replies of the size that a real model gave for them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.data
def test_a_short_passage_costs_no_more_calls_and_tokens_than_it_may() -> None:
    folder = os.environ.get("QRMEM_DATA")
    if not folder or not (Path(folder) / "musique").is_dir():
        pytest.skip("QRMEM_DATA does not name a folder with musique")
    arguments = ["benchmarks", "model", "--part=tokens", "--check", "--brief", "--passages=80"]
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": "tests"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MuSiQue, compact: 80 segments" in done.stderr
