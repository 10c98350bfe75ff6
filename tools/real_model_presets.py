"""Runs every preset to its end against a real, small chat model, and reports the usage.

    QRMEM_DATA=… .ci/real-model-presets [PRESET …] [--kept FOLDER] [--items 5] [--words N] [--write]

Over the first questions of the real files, their texts shortened (`tools.short_data`). It says
nothing of quality. Each preset is a `qrmem eval run`. What was asked of the model word for word, by
another preset or before this command was stopped, is not sent to it again. Prints a line for each
preset; `--write` writes their table in `docs/results`. Dense systems run with the extra `local`.
"""

import argparse
import asyncio
import contextlib
import hashlib
import io
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from servers.relay import relaying

from benchmarks import multihop
from qrmem.cli import main as qrmem
from qrmem.config import Settings
from qrmem.eval import Preset, Results, preset_named, preset_names, read_results
from qrmem.eval.preset import folder_of
from qrmem.eval.run_folder import RunFolder
from qrmem.eval.running import about
from qrmem.graphstore import open_store
from qrmem.llm.embedders import default_embedder
from tools.evaluation_tables import write_presets
from tools.short_data import write_data

SETTINGS = {
    "QRMEM_SEGMENT_TOKENS": "80",
    "QRMEM_QUESTIONS": "1",
    "QRMEM_RESERVE": "80",
    "QRMEM_CONCURRENCY": "1",
    "QRMEM_TIMEOUT": "900",
}
"""A model of 50 tokens a second is to be done within the hour."""
WINDOW = 1024
MOST_CALLS = 2000
NOT_SERVED = ("ada-leval-perplexity",)
"""Presets that need what the model's server does not give: log-probabilities of a prompt."""
FROM_A_HUB = "llmlingua-2"
"""A system whose weights are not here; it is left out, also where its package is installed."""
ENDED = (0, 1)
"""Exit codes of a run that came to its end: all of it, or with what failed or was left out told."""

Json = dict[str, Any]


def run(preset: Preset, data: Path, out: Path, url: str, model: str, items: int) -> tuple[int, str]:
    """Run a preset as a user does; return the exit code and the messages besides the report.

    Args:
        items: of the preset at least, from all its parts alike.
    """
    sample = -(-items // len(preset.parts))
    words = ["eval", "run", preset.name, "--data", str(data), "--out", str(out)]
    words += ["--model", model, "--base-url", url, "--sample", str(sample)]
    words += ["--window", str(WINDOW), "--concurrency", "1", "--max-calls", str(MOST_CALLS)]
    told = io.StringIO()
    for label in (label for label, system in preset.systems.items() if system == FROM_A_HUB):
        words += ["--system", ",".join(other for other in preset.systems if other != label)]
        told.write(f"not run: {label}: its weights come from a hub\n")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
        code = qrmem(words)
    return code, told.getvalue()


def ran(preset: Preset, data: Path, out: Path, url: str, items: int) -> Json:
    """Run a preset from its beginning; returns what it did."""
    shutil.rmtree(out, ignore_errors=True)
    began = time.monotonic()
    code, told = run(preset, data, out, url, os.environ["QRMEM_REAL_MODEL"], items)
    figures = summary(preset, out, code, told, time.monotonic() - began)
    if code not in ENDED:
        raise SystemExit(f"{preset.name} ended with exit code {code}:\n{told}")
    return figures


def found(preset: Preset, out: Path) -> Iterator[Results]:
    """Yield the results of a preset's parts."""
    for part in preset.parts:
        folder = out / folder_of(part)
        if (folder / "run.json").exists():
            yield read_results(folder)


async def outcomes(stores: Sequence[Path]) -> tuple[Counter[str], int, float]:
    """Return how the replies that stores know of could be read, their tokens and their seconds."""
    counts: Counter[str] = Counter()
    tokens, seconds = 0, 0.0
    for path in stores:
        store = await open_store(str(path), Settings())
        for name in await store.namespaces():
            calls = [c for c in await store.calls(name) if c.outcome != "cached"]
            counts.update(call.outcome for call in calls)
            tokens += sum(call.tokens_in + call.tokens_out for call in calls)
            seconds += sum(call.seconds for call in calls)
        await store.close()
    return counts, tokens, seconds


def summary(preset: Preset, out: Path, code: int, told: str, seconds: float) -> Json:
    """Return what a preset did."""
    parts = list(found(preset, out))
    results = [result for part in parts for result in part.systems.values()]
    failed = Counter(_kind(error) for result in results for error in result.errors.values())
    stores = [*out.glob("*/replies.db"), *out.glob("*/memories/*.db")]
    counts, tokens, model_seconds = asyncio.run(outcomes(stores))
    calls = counts.total()
    is_written = (out / "report" / "report.md").exists()
    return {
        "git": ", ".join(sorted({part.config["about"]["git"] for part in parts})),
        "exit": code,
        "report": is_written,
        "parts": len(parts),
        "systems": len({result.system for result in results}),
        "items": sum(len(part.items) for part in parts),
        "results": sum(len(result.rows) for result in results),
        "failed": dict(failed),
        "unread segments": sum(RunFolder(part.path).unread()[0] for part in parts),
        "left out": [
            line.partition("not run: ")[2] for line in told.splitlines() if "not run:" in line
        ],
        "calls": calls,
        "tokens": tokens,
        "parsed": round(1 - counts["unparsable"] / calls, 4) if calls else None,
        "outcomes": dict(sorted(counts.items())),
        "model seconds": round(model_seconds),
        "seconds": round(seconds),
    }


def _kind(error: str) -> str:
    return error[:160]


def line(name: str, made: Mapping[str, Any]) -> str:
    """Return a preset as one line."""
    parsed = "" if made["parsed"] is None else f", {made['parsed']:.0%} parsed"
    failed = sum(made["failed"].values())
    told = [f"{count}x {why}" for why, count in made["failed"].items()] + made["left out"]
    if made["unread segments"]:
        told.append(f"{made['unread segments']} segments of memories were not read, or not wholly")
    ended = "report written" if made["report"] else "NO REPORT"
    return (
        f"{name}: exit {made['exit']}, {ended}; {made['items']} items, {made['systems']} systems, "
        f"{made['results']} results, {failed} failed; {made['calls']} calls "
        f"({made['asked anew']} of them anew), {made['tokens']} tokens, {made['seconds']} s{parsed}"
        + "".join(f"\n    {why}" for why in told)
    )


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def conditions(items: int, words: int, data: Path) -> Json:
    """Return with what the presets were run."""
    weights = os.environ.get("QRMEM_REAL_MODEL_WEIGHTS", "")
    files = sorted(path for path in data.rglob("*") if path.is_file())
    made_by = {name: value for name, value in about().items() if name != "git"}
    return {
        "model": os.environ["QRMEM_REAL_MODEL"],
        "weights": {"name": Path(weights).name, "sha256": checksum(Path(weights))}
        if weights
        else None,
        "settings": SETTINGS,
        "window": WINDOW,
        "embedder": default_embedder(),
        "items": items,
        "words": words,
        "seed": 0,
        "files": {str(path.relative_to(data)): checksum(path) for path in files},
        "about": made_by,
    }


def main(names: list[str], kept: Path, items: int, words: int, *, write: bool) -> int:
    """Run presets; 1 if one of them has no report."""
    os.environ.update(SETTINGS)
    data = kept / "data"
    write_data(data, multihop.folder(), items=items, words=words)
    made: Json = {}
    with relaying(os.environ["QRMEM_REAL_MODEL_URL"], kept / "replies") as relay:
        for name in names or [name for name in preset_names() if name not in NOT_SERVED]:
            done = kept / f"{name}.json"
            if not done.exists():
                before = relay.fetched
                figures = ran(preset_named(name), data, kept / "runs" / name, relay.url, items)
                figures["asked anew"] = relay.fetched - before
                done.write_text(json.dumps(figures), encoding="utf-8")
            made[name] = json.loads(done.read_text(encoding="utf-8"))
            print(line(name, made[name]), flush=True)
    if write:
        write_presets({**conditions(items, words, data), "presets": made})
    return int(not all(preset["report"] for preset in made.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__)
    parser.add_argument("names", nargs="*", metavar="PRESET")
    parser.add_argument("--kept", type=Path, default=Path("build/real-model-presets"))
    parser.add_argument("--items", type=int, default=5)
    parser.add_argument("--words", type=int, default=70)
    parser.add_argument("--write", action="store_true")
    chosen = parser.parse_args()
    sys.exit(main(chosen.names, chosen.kept, chosen.items, chosen.words, write=chosen.write))
