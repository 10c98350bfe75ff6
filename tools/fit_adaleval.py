"""Fit the weights by which Ada-LEval's tasks are solved without a model, and check them.

    QRMEM_DATA=… python -m tools.fit_adaleval tsort|bestanswer

TSort's cases are cut out of the two novels, QuALITY's stories and NarrativeQA's texts as `qrmem
eval build tsort` cuts them; BestAnswer's are those of the released file, and the same with answers
of similar questions added. The chance of an order, or of an answer, is the softmax of its weighted
signals; the weights make the right ones likeliest. What is reported is of texts, or of fifths of
the questions, that were left out of the fit, each in turn.
"""

import json
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import multihop
from qrmem.eval import Corpus, load
from qrmem.eval.datasets.books import leval
from qrmem.eval.registry import build
from qrmem.eval.systems import adaleval_prompting, ordering

LENGTHS = ("2k", "4k", "8k", "16k", "32k")
STRIDE, PER_TEXT = 12, 120
ADDED = (0, 8, 18)
"""Answers of similar questions that are added to a case: about 1k, 2k and 4k tokens."""
FOLDS = 5
STEPS, RATE, PENALTY = 300, 0.5, 0.005
DRAWS = 2000

Case = tuple[NDArray[np.float64], int]
"""Signals of each possibility, and which of them is right."""
Groups = Mapping[str, Mapping[str, Sequence[Case]]]
"""Group that is left out together (a text or a fold) to its cases by length."""
Hits = dict[str, dict[str, list[bool]]]
"""Length to group to whether each case was right with weights of the other groups."""


def texts(data: Path) -> Iterator[tuple[str, str]]:
    """Yield the texts that TSort's weights are fitted on."""
    for path in sorted((data / "gutenberg").glob("*.txt")):
        yield f"novel {path.stem}", path.read_text(encoding="utf-8")
    narrative = load("longbench-narrativeqa", data / "longbench" / "narrativeqa.json", Corpus())
    found = [leval(data / "quality" / "leval_quality15docs.jsonl"), narrative]
    for kind, dataset in zip(("story", "narrative"), found, strict=True):
        seen = {context.documents[0].text for context in dataset.contexts.values()}
        for n, text in enumerate(sorted(seen)):
            yield f"{kind} {n}", text


def order_cases(data: Path) -> Groups:
    """Return cases by text and length."""
    made: dict[str, dict[str, list[Case]]] = defaultdict(lambda: defaultdict(list))
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "texts", Path(folder) / "set"
        source.mkdir()
        for name, text in texts(data):
            (source / f"{name}.txt").write_text(text, encoding="utf-8")
        build("tsort", source, out, (f"length={','.join(LENGTHS)}", f"stride={STRIDE}"))
        for length in LENGTHS:
            with (out / f"tsort_{length}.jsonl").open(encoding="utf-8") as file:
                for case in map(json.loads, file):
                    found = made[case["book_id"]][length]
                    if len(found) < PER_TEXT:
                        places = list(permutations(range(1, len(case["answer"]) + 1)))
                        parts = [case["before"], *case["segments"], case["after"]]
                        orders = ordering.of_orders(ordering.signals(parts), places)
                        found.append((orders, places.index(tuple(case["answer"]))))
    return made


def answer_cases(data: Path) -> Groups:
    """Return cases by fold and number of added answers."""
    file = data / "adaleval" / "bestanswer_1k_first500.json"
    items = json.loads(file.read_text(encoding="utf-8"))
    made: dict[str, dict[str, list[Case]]] = defaultdict(lambda: defaultdict(list))
    rng = random.Random(1)
    for n, item in enumerate(items):
        others = [
            a for k, o in enumerate(items) if k != n and _alike(o, item) for a in o["all_answers"]
        ]
        for added in ADDED:
            options = item["all_answers"] + rng.sample(others, min(added, len(others)))
            found = adaleval_prompting.signals(item["question"], options)
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


def left_out(groups: Groups) -> Hits:
    """Return whether each case is right with weights fitted on the other groups."""
    hits: Hits = defaultdict(dict)
    for held, own in groups.items():
        rest = [case for name, parts in groups.items() if name != held for case in _all(parts)]
        weights = fitted(rest)
        for part, cases in own.items():
            hits[part][held] = [int(np.argmax(found @ weights)) == right for found, right in cases]
    return hits


def _all(parts: Mapping[str, Sequence[Case]]) -> Iterator[Case]:
    for cases in parts.values():
        yield from cases


def share(groups: Sequence[Sequence[bool]]) -> str:
    """Return the percentage of right cases, with its 95 % interval.

    Args:
        groups: what belongs together, such as the cases of one text, which overlap. The interval is
            of drawing groups again; of one group, of drawing its cases.
    """
    drawn = groups if len(groups) > 1 else [[hit] for hit in groups[0]]
    right, count = (np.array([of(group) for group in drawn]) for of in (sum, len))
    rng = np.random.default_rng(0)
    places = rng.integers(0, len(drawn), (DRAWS, len(drawn)))
    shares = 100 * right[places].sum(axis=1) / count[places].sum(axis=1)
    low, high = np.percentile(shares, (2.5, 97.5))
    return f"{100 * right.sum() / count.sum():.1f} [{low:.1f}, {high:.1f}] n={count.sum()}"


def main(kind: str) -> None:
    """Fit and report."""
    data = multihop.folder()
    groups = order_cases(data) if kind == "tsort" else answer_cases(data)
    names = (*ordering.PAIR, "brought in") if kind == "tsort" else adaleval_prompting.SIGNALS
    for part, hits in left_out(groups).items():
        for held, own in hits.items():
            print(f"{held}, {part}: {share([own])}")
        flags = (
            list(hits.values()) if kind == "tsort" else [[h for own in hits.values() for h in own]]
        )
        print(f"{part}: {share(flags)}, left out of the fit")
    every = [case for own in groups.values() for case in _all(own)]
    print(", ".join(f"{name} {w:.3g}" for name, w in zip(names, fitted(every), strict=True)))


if __name__ == "__main__":
    main(sys.argv[1])
