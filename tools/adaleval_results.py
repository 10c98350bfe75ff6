"""Builds Ada-LEval's cases from real texts, solves them without a model, writes tables for docs.

    QRMEM_DATA=… python -m tools.adaleval_results [--kept FOLDER]

First what counts: texts and questions that were left out of the fit of the weights, each in turn
(`tools.fit_adaleval`). Then the rules as they are run: TSort of two novels, of which the weights
were fitted, and of essays, of which they were not; BestAnswer's released file, and longer cases
that are built out of its threads. A kept folder is not built again, and what was left out is not
fitted again.
"""

import argparse
import asyncio
import json
import math
import shutil
from pathlib import Path

from benchmarks import multihop
from qrmem.agents.build_state import silent
from qrmem.config import Settings
from qrmem.eval import RunOptions, RunSpec, preset_named, read_results, run_task
from qrmem.eval.registry import build
from tools import fit_adaleval as fit
from tools.evaluation_tables import table

PAGE = Path(__file__).parent.parent / "docs" / "results" / "ada-leval.md"
LENGTHS = "2k,4k,8k,16k,32k"
QUOTED = ("GPT-4-Turbo-0125", "GPT-4-Turbo-1106", "Claude-2")
COUNT = 200
FEWEST = 10
"""Minimum number of cases of a table cell."""
SYSTEM = "ada-rules"


def sources(data: Path) -> dict[str, tuple[str, Path]]:
    """Return the sources of TSort: name to lengths and a folder."""
    return {
        "two novels (in the fit)": (LENGTHS, data / "gutenberg"),
        "essays (not in the fit)": ("2k,4k,8k", data / "niah" / "PaulGrahamEssays"),
    }


def threads(data: Path, kept: Path) -> Path:
    """Write the released cases as threads, the accepted answer the last, to build longer ones."""
    made = kept / "threads.jsonl"
    file = data / "adaleval" / "bestanswer_1k_first500.json"
    with made.open("w", encoding="utf-8") as lines:
        for item in json.loads(file.read_text(encoding="utf-8")):
            right = int(item["answer"][1:]) - 1
            answers = [
                {"id": f"{item['question_id']}-{n}", "body": body, "date": str(int(n == right))}
                for n, body in enumerate(item["all_answers"])
            ]
            accepted = f"{item['question_id']}-{right}"
            thread = {"id": item["question_id"], "body": item["question"], "tags": item["tags"]}
            row = {**thread, "accepted_answer_id": accepted, "answers": answers}
            lines.write(json.dumps(row) + "\n")
    return made


def made(kind: str, source: Path, out: Path, *options: str) -> Path:
    """Build a set, or return an existing one."""
    if not out.exists():
        build(kind, source, out, ("seed=7", *options))
    return out


async def solved(kind: str, file: Path, out: Path) -> tuple[str, int]:
    """Return the share that the rules get right with its interval, and the number of cases."""
    spec = RunSpec(task=kind, data=file, systems=(SYSTEM,))
    await run_task(spec, out, Settings(embedder="none"), RunOptions(listener=silent))
    found = read_results(out).systems[SYSTEM].mean("strict")
    assert found is not None
    low, high = 100 * found.low, 100 * found.high
    return f"{100 * found.value:.1f} [{low:.1f}, {high:.1f}] n={found.n}", found.n


def left_out(data: Path, kept: Path) -> tuple[list[list[str]], list[list[str]]]:
    """Return rows of what was left out of the fit, of TSort and of BestAnswer; fitted once."""
    file = kept / "left-out.json"
    if not file.exists():
        orders = fit.left_out(fit.order_cases(data))
        answers = fit.left_out(fit.answer_cases(data))
        kept.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps([orders, answers]), encoding="utf-8")
    orders, answers = json.loads(file.read_text(encoding="utf-8"))
    rows = []
    for name, kind in (("all texts", ""), ("the two novels", "novel "), ("stories", "story ")):
        cells = []
        for length in LENGTHS.split(","):
            hits = [own for text, own in orders.get(length, {}).items() if text.startswith(kind)]
            # Two novels are too few to be drawn again: their cases are.
            few = [[hit for own in hits for hit in own]]
            cells.append(fit.share(hits if len(hits) > 5 else few) if len(few[0]) >= FEWEST else "")
        rows.append([f"rules, left out: {name}", *cells])
    flat = [[[hit for own in by_fold.values() for hit in own]] for by_fold in answers.values()]
    return rows, [["rules, a fifth left out in turn", *map(fit.share, flat)]]


async def main(kept: Path) -> None:
    """Build everything and write the page."""
    data = multihop.folder()
    (rows, best), built = left_out(data, kept), []
    for n, (name, (lengths, source)) in enumerate(sources(data).items()):
        out = made(
            "tsort", source, kept / f"tsort-{n}", f"length={lengths}", f"count={COUNT}", "stride=16"
        )
        cells = {}
        for about in json.loads((out / "manifest.json").read_text(encoding="utf-8"))["files"]:
            length = about["file"].split("_")[1].removesuffix(".jsonl")
            runs = kept / "runs" / f"tsort-{n}-{length}"
            if about["cases"] >= FEWEST:
                cells[length] = (await solved("tsort", out / about["file"], runs))[0]
            built.append(["TSort", name, length, *_numbers(about)])
        rows.append(
            [f"rules, as they are run: {name}", *(cells.get(k, "") for k in LENGTHS.split(","))]
        )
    rows += _quoted("TSort", LENGTHS.split(","))
    answers = ["1k", "2k", "4k"]
    source = threads(data, kept)
    out = made("bestanswer", source, kept / "bestanswer", "length=2k,4k", f"count={COUNT}")
    released = data / "adaleval" / "bestanswer_1k_first500.json"
    cells = {"1k": (await solved("bestanswer", released, kept / "runs" / "best-1k"))[0]}
    for about in json.loads((out / "manifest.json").read_text(encoding="utf-8"))["files"]:
        length = about["file"].split("_")[1].removesuffix(".jsonl")
        runs = kept / "runs" / f"best-{length}"
        cells[length] = (await solved("bestanswer", out / about["file"], runs))[0]
        built.append(["BestAnswer", "the released threads", length, *_numbers(about)])
    best.append(["rules, as they are run (questions in the fit)", *(cells[k] for k in answers)])
    best += _quoted("BestAnswer", answers)
    PAGE.write_text(_page(rows, best, answers, built), encoding="utf-8")
    print(PAGE.read_text(encoding="utf-8"))


def _numbers(about: dict[str, int]) -> list[str]:
    return [
        str(about["cases"]),
        f"{about['max_tokens']:,}",
        f"{math.floor(about['mean_tokens']):,}",
    ]


def _quoted(task: str, lengths: list[str]) -> list[list[str]]:
    """Return the paper's rows for some models and for chance."""
    numbers = [preset_named(f"ada-leval-{name}").paper for name in (task.lower(), "ultra-long")]
    found = []
    for model, label in [*((model, "Prompt") for model in QUOTED), ("all", "Random guess")]:
        row = []
        for length in lengths:
            values = [n.get(model, {}).get(label, {}).get(f"{task} {length}", {}) for n in numbers]
            value = next((v["official"] for v in values if "official" in v), None)
            row.append("" if value is None else f"{100 * value:.1f}")
        found.append([f"paper: {model if label == 'Prompt' else label.lower()}", *row])
    return found


def _page(
    rows: list[list[str]], best: list[list[str]], answers: list[str], built: list[list[str]]
) -> str:
    return "\n".join(
        [
            "# Ada-LEval without a chat model\n",
            "Made by `QRMEM_DATA=… python -m tools.adaleval_results`. Accuracy in %, with the 95 % "
            "bootstrap interval over cases, by the rules `ada-rules`: no chat model, no embedder. "
            "The paper's rows are of other cases: they are for orientation, not for comparison. A "
            "cell of fewer "
            f"than {FEWEST} cases is left out.\n",
            "## TSort\n",
            table(["", *LENGTHS.split(",")], rows),
            "The weights were fitted on these two novels, fifteen short stories of QuALITY and six "
            "of NarrativeQA's texts; `left out` is each of these texts solved with weights of all "
            "others, its cases twelve paragraphs apart. As they overlap, the interval of more than "
            "five texts is of drawing texts. A longer part begins and ends with more to go by; "
            "novels are harder than stories and scripts. The essays have no blank lines: sentences "
            "stand for their paragraphs.\n",
            "## BestAnswer\n",
            table(["", *answers], best),
            "1k is the released file. 2k and 4k are built out of its threads by `qrmem eval build "
            "bestanswer`; of the fifths left out, they are the same questions with 8 and 18 "
            "answers of similar questions added.\n",
            "## What was built\n",
            "Ada-LEval's Table 1, for these sets:\n",
            table(["task", "source", "length", "cases", "max tokens", "mean tokens"], built),
        ]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("--kept", type=Path, default=Path("build/adaleval"))
    chosen = parser.parse_args()
    shutil.rmtree(chosen.kept / "runs", ignore_errors=True)
    asyncio.run(main(chosen.kept))
