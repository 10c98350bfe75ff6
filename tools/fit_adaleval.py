"""Fit the weights by which Ada-LEval's tasks are solved without a model.

    python -m tools.fit_adaleval tsort FOLDER [LENGTH…]
    python -m tools.fit_adaleval bestanswer FILE

TSort's cases are cut out of the folder's texts as `qrmem eval build tsort` cuts them; BestAnswer's
are those of the file, and the same with answers of similar questions added. The chance of an order,
or of an answer, is the softmax of its weighted signals; the weights make the right ones likeliest.
What is reported is of texts, or questions, that were left out of the fit, each in turn.
"""

import json
import random
import sys
import tempfile
from collections import defaultdict
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmem.eval.registry import build
from qrmem.eval.systems import choosing_answers, ordering

STRIDE, PER_TEXT = 12, 120
ADDED = (0, 8, 18)
"""Answers of similar questions that are added to a case: about 1k, 2k and 4k tokens."""
FOLDS = 5
STEPS, RATE, PENALTY = 300, 0.5, 0.005

Case = tuple[NDArray[np.float64], int]
"""Signals of each possibility, and which of them is right."""


def order_cases(folder: Path, lengths: list[str]) -> dict[str, dict[str, list[Case]]]:
    """Return cases by text and length."""
    made: dict[str, dict[str, list[Case]]] = defaultdict(lambda: defaultdict(list))
    for length in lengths:
        with tempfile.TemporaryDirectory() as out:
            build("tsort", folder, Path(out) / "set", (f"length={length}", f"stride={STRIDE}"))
            lines = (Path(out) / "set" / f"tsort_{length}.jsonl").read_text(encoding="utf-8")
        for line in lines.splitlines():
            case = json.loads(line)
            found = made[case["book_id"]][length]
            if len(found) < PER_TEXT:
                places = list(permutations(range(1, len(case["answer"]) + 1)))
                texts = [case["before"], *case["segments"], case["after"]]
                orders = ordering.of_orders(ordering.signals(texts), places)
                found.append((orders, places.index(tuple(case["answer"]))))
    return made


def answer_cases(file: Path) -> dict[str, dict[str, list[Case]]]:
    """Return cases by fold and number of answers that were added."""
    items = json.loads(file.read_text(encoding="utf-8"))
    made: dict[str, dict[str, list[Case]]] = defaultdict(lambda: defaultdict(list))
    rng = random.Random(1)
    for n, item in enumerate(items):
        others = [
            a for k, o in enumerate(items) if k != n and _alike(o, item) for a in o["all_answers"]
        ]
        for added in ADDED:
            options = item["all_answers"] + rng.sample(others, min(added, len(others)))
            found = choosing_answers.signals(item["question"], options)
            made[str(n % FOLDS)][f"+{added}"].append((found, int(item["answer"][1:]) - 1))
    return made


def _alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return not set(one["tags"]).isdisjoint(other["tags"])


def fitted(cases: list[Case]) -> NDArray[np.float64]:
    """Return weights by gradient ascent; signals are scaled for it, weights are not."""
    scale = np.concatenate([found for found, _ in cases]).std(axis=0) + 1e-9
    most, count = max(len(found) for found, _ in cases), len(scale)
    signals, masked = np.zeros((len(cases), most, count)), np.full((len(cases), most), -1e9)
    for n, (found, _) in enumerate(cases):
        signals[n, : len(found)] = found / scale
        masked[n, : len(found)] = 0
    right = signals[np.arange(len(cases)), [place for _, place in cases]]
    weights = np.zeros(count)
    for _ in range(STEPS):
        logits = signals @ weights + masked
        shares = np.exp(logits - logits.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        expected = np.einsum("ij,ijk->ik", shares, signals)
        weights += RATE * ((right - expected).mean(axis=0) - PENALTY * weights)
    return np.asarray(weights / scale)


def main(arguments: list[str]) -> None:
    """Fit and report."""
    kind, path = arguments[0], Path(arguments[1])
    groups = (
        order_cases(path, arguments[2:] or ["2k", "8k"]) if kind == "tsort" else answer_cases(path)
    )
    names = (*ordering.PAIR, "brought in") if kind == "tsort" else choosing_answers.SIGNALS
    hits: dict[str, list[bool]] = defaultdict(list)
    for held in groups:
        rest = [
            c for name, own in groups.items() if name != held for part in own.values() for c in part
        ]
        weights = fitted(rest)
        for part, cases in groups[held].items():
            own = [int(np.argmax(found @ weights)) == right for found, right in cases]
            hits[part] += own
            print(f"{held}, {part}: {np.mean(own):.3f} of {len(own)}")
    for part, flags in hits.items():
        print(f"{part}: {np.mean(flags):.3f} of {len(flags)}, left out of the fit")
    every = [case for own in groups.values() for part in own.values() for case in part]
    print(", ".join(f"{name} {w:.3g}" for name, w in zip(names, fitted(every), strict=True)))


if __name__ == "__main__":
    main(sys.argv[1:])
