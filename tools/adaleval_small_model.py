"""Runs Ada-LEval's presets end to end by a small, real chat model; writes their tables in docs.

    QRMEM_DATA=… .ci/real-model .venv/bin/python -m tools.adaleval_small_model [--cases 5]

TSort is cut out of two novels at 2k, BestAnswer is the released file at 1k. It shows that a report
is made; a model of 135 million weights is far too small for either.
"""

import argparse
import contextlib
import io
import os
import shutil
from pathlib import Path

from benchmarks import multihop
from qrmem.cli import main as qrmem
from qrmem.eval.registry import build

PAGE = Path(__file__).parent.parent / "docs" / "results" / "ada-leval-small-model.md"
PRESETS = ("ada-leval-tsort", "ada-leval-bestanswer")


def main(data: Path, url: str, model: str, kept: Path, cases: int, page: Path = PAGE) -> None:
    """Build the cases, run the presets over some of them, write the page."""
    folder = kept / "data"
    if not folder.exists():
        build("tsort", data / "gutenberg", folder, ("length=2k", "seed=7"))
        shutil.copy(
            data / "adaleval" / "bestanswer_1k_first500.json", folder / "bestanswer_1k.json"
        )
    told = []
    for preset in PRESETS:
        words = ["eval", "run", preset, "--data", str(folder), "--sample", str(cases), "--quiet"]
        words += ["--system", "Prompt", "--embedder", "none", "--concurrency", "1"]
        with contextlib.redirect_stdout(io.StringIO()):
            qrmem([*words, "--model", model, "--base-url", url, "--out", str(kept / preset)])
        report = (kept / preset / "report" / "report.md").read_text(encoding="utf-8")
        # What follows the tables are figures, and files of this run.
        told.append(
            report.partition("\nWhat ran:")[0].replace("\n## ", "\n### ").replace("# ", "## ", 1)
        )
    head = (
        f"# Ada-LEval by a small, real chat model\n\nMade by `.ci/real-model .venv/bin/python -m "
        f"tools.adaleval_small_model --cases {cases}`: {model}, {cases} cases of each task. It "
        "shows a report from end to end, and little of quality.\n\n"
    )
    page.write_text(head + "\n".join(told), encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--cases", type=int, default=5)
    parser.add_argument("--kept", type=Path, default=Path("build/adaleval-small-model"))
    chosen = parser.parse_args()
    real = (os.environ["QRMEM_REAL_MODEL_URL"], os.environ["QRMEM_REAL_MODEL"])
    main(multihop.folder(), *real, chosen.kept, chosen.cases)
