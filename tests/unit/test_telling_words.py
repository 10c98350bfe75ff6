"""The search's feature for the few words that make a question."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import qrmem
from qrmem.retrieval import ranking
from qrmem.retrieval.candidates import Neighbourhood
from qrmem.retrieval.ranking import FEATURES, WEIGHTS

TELLING = "telling words"


def evidence(weights: list[float], profiles: list[list[float]], rows: list[int]) -> Any:
    """Return candidates by how often each has each term of a question."""
    near: Any = SimpleNamespace(
        weights=np.array(weights),
        profiles=np.array(profiles),
        question=SimpleNamespace(total=sum(weights)),
    )
    near.coverage = partial(Neighbourhood.coverage, near)
    return SimpleNamespace(near=near, rows=np.array(rows))


def test_a_word_counts_by_its_share_and_its_share_of_squared_weights() -> None:
    profiles = [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]
    found = FEATURES[TELLING](evidence([6.0, 3.0, 1.0], profiles, [0, 1, 2, 3]))
    assert found.tolist() == pytest.approx([216 / 460, 28 / 460, 244 / 460, 0.0])


def test_one_rare_word_is_nearly_all_and_ten_words_are_next_to_nothing() -> None:
    rare = FEATURES[TELLING](evidence([9.0, 0.5, 0.5], [[1.0, 0.0, 0.0]], [0]))
    assert rare[0] > 0.8
    spread = FEATURES[TELLING](evidence([1.0] * 10, [[1.0] * 10], [0]))
    assert spread[0] == pytest.approx(0.1)


def test_a_rare_word_beside_common_ones_is_most_of_a_question() -> None:
    """As "How do people feel about village?" has it, in a novel."""
    found = FEATURES[TELLING](evidence([4.0, 2.0, 1.0], [[1, 0, 0], [0, 1, 1]], [0, 1]))
    assert found[0] > 5 * found[1]


def test_a_word_that_comes_often_counts_once_and_only_candidates_are_measured() -> None:
    profiles = [[0.0, 0.0], [1.9, 0.0], [0.4, 0.0]]
    found = FEATURES[TELLING](evidence([1.0, 1.0], profiles, [2, 1]))
    assert found.tolist() == pytest.approx([0.1, 0.25])


def test_a_question_without_a_word_that_is_known_has_none() -> None:
    assert FEATURES[TELLING](evidence([], [[], []], [0, 1])).tolist() == [0.0, 0.0]


RARE = [
    "Ambergris is used for perfume, said Pip Larsson of Skarrow to the Turks of Rome.",
    "Old Pip Larsson sold a lump of ambergris in the market one Monday.",
    "A grey stone turned out to be ambergris when it was burnt.",
    "The cook put ambergris into the punch of the admiral.",
]
NAMES = [
    f"Pip Larsson of Skarrow wrote letter number {n} to the Turks of Rome about what is used for"
    " rope and sails."
    for n in range(30)
]
QUESTION = "What is ambergris used for in Rome?"


async def scores() -> dict[str, float]:
    """Return the first hits of the question with their scores."""
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(
            [{"id": f"{'ra'[n >= len(RARE)]}{n}", "text": t} for n, t in enumerate(RARE + NAMES)]
        )
        return {hit.document_id: hit.score for hit in await memory.search(QUESTION, k=8)}


async def test_what_holds_the_rare_word_leads_by_more_than_names_alone_would_have_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = await scores()
    assert sorted(list(found)[:4]) == ["r0", "r1", "r2", "r3"]
    lead = min(found[one] for one in ("r1", "r2", "r3")) - max(list(found.values())[4:])
    monkeypatch.setattr(ranking, "WEIGHTS", {**WEIGHTS, TELLING: 0.0})
    plain = await scores()
    plain_rare = [plain.get(one, 0.0) for one in ("r1", "r2", "r3")]
    others = [score for one, score in plain.items() if one.startswith("a")]
    assert lead > min(plain_rare) - max(others) + 0.1, "the feature makes the difference"
