"""The notebook of the docs runs as it stands, with a bar that ends full."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat

TOUR = Path(__file__).parents[2] / "docs" / "examples" / "tour.ipynb"


def outputs(notebook: Any) -> list[list[Any]]:
    """Return what each cell of code shows."""
    return [
        [one.get("text") or one.get("data") for one in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_the_tour_runs_and_its_bar_ends_full(tmp_path: Path) -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("QRMEM_", "OPENAI_"))}
    ran = tmp_path / "ran.ipynb"
    shutil.copy(TOUR, tmp_path)  # it makes its memory beside itself
    subprocess.run(
        [sys.executable, "-m", "jupyter", "execute", "--timeout=280", f"--output={ran}", TOUR.name],
        cwd=tmp_path,
        env={**kept, "HOME": str(tmp_path), "JUPYTER_PLATFORM_DIRS": "1"},
        check=True,
        capture_output=True,
        timeout=290,
    )
    shown = outputs(nbformat.read(ran, 4))  # type: ignore[no-untyped-call]
    committed = outputs(nbformat.read(TOUR, 4))  # type: ignore[no-untyped-call]
    assert [len(cell) for cell in shown] == [len(cell) for cell in committed]
    assert "Lucian Ashby was born on Mussel Island" in str(shown)
    bar = shown[1][0]["text/html"]
    assert bar == "<progress value='32' max='32'></progress> 32 of 32 segments"
