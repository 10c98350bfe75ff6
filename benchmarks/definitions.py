"""How often a search for a Python function finds its definition first.

    python -m benchmarks.definitions FOLDER [--functions 100]

Functions are drawn at random from all files below a folder, vendored ones included, which a memory
doesn't read; each is asked for in three ways.
"""

import argparse
import ast
import asyncio
import random
import re
from collections import defaultdict
from pathlib import Path

import qrmem

_ASKED = ("{}", "Where is {} defined?", "What does {}() return?")


def functions(folder: Path) -> dict[str, set[tuple[str, int]]]:
    """Return the files and lines that each function is defined in, by its name."""
    found = defaultdict(set)
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if not node.name.startswith("__"):
                found[node.name].add((path.relative_to(folder).as_posix(), node.lineno))
    return dict(found)


def holds(hit: qrmem.Hit, places: set[tuple[str, int]]) -> bool:
    """Return whether a hit has one of these lines."""
    lines = [int(number) for number in re.findall(r"\d+", hit.part)]
    return any(file == hit.document_id and lines[0] <= line <= lines[-1] for file, line in places)


async def measure(folder: Path, count: int) -> None:
    """Ask for each, and print the shares."""
    places = functions(folder)
    names = random.Random(6).sample(sorted(places), count)
    async with qrmem.open("memory://", model="", embedder="none") as memory:
        await memory.add(str(folder))
        for form in _ASKED:
            hits = [await memory.search(form.format(name), k=1) for name in names]
            first = [
                found
                for found, name in zip(hits, names, strict=True)
                if found and holds(found[0], places[name])
            ]
            print(f"{form:24} {100 * len(first) / count:.0f} % found first")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--functions", type=int, default=100)
    chosen = parser.parse_args()
    asyncio.run(measure(chosen.folder, chosen.functions))
