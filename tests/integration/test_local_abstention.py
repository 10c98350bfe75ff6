"""How often the local reasoner answers and abstains wrongly, on SQuAD paragraphs."""

import json
import os
from pathlib import Path

import pytest

from qrmem.answering.local import LocalReasoner
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import AskContext, Passage, Segment

pytestmark = pytest.mark.data

_EVERY = 12
"""One question in so many is asked: a hundred in all."""


@pytest.fixture(scope="module")
def articles() -> list[list[dict[str, object]]]:
    folder = os.environ.get("QRMEM_DATA")
    path = Path(folder or "", "squad", "xquad.en.json")
    if not folder or not path.is_file():
        pytest.skip("QRMEM_DATA does not name a folder with squad/xquad.en.json")
    data = json.loads(path.read_text(encoding="utf-8"))["data"]
    return [article["paragraphs"] for article in data]


def passage(text: object) -> Passage:
    assert isinstance(text, str)
    return Passage("S1", Segment("s", "d", 0, 0, len(text), text, len(text) // 4))


async def test_questions_on_their_own_paragraph_are_answered_and_on_others_are_not(
    articles: list[list[dict[str, object]]],
) -> None:
    reasoner = LocalReasoner(BuiltinTokenizer())
    asked = [
        (question["question"], paragraph["context"], other["context"])
        for at, paragraphs in enumerate(articles)
        for paragraph, other in zip(paragraphs, articles[at - 1], strict=False)
        for question in paragraph["qas"]  # type: ignore[attr-defined]
    ][::_EVERY]
    assert len(asked) > 90
    own = [await reasoner.judge(AskContext(q), [passage(text)]) for q, text, _ in asked]
    wrong = [await reasoner.judge(AskContext(q), [passage(text)]) for q, _, text in asked]
    assert sum(verdict.is_answerable for verdict in own) >= 0.6 * len(asked)
    assert sum(verdict.is_answerable for verdict in wrong) <= 0.03 * len(asked)
