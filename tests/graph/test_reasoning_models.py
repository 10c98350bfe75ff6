"""Models whose hidden reasoning counts against the limit of a reply."""

import asyncio
import json
from typing import Any

import pytest

from qrmem.answering.with_model import PromptedReasoner
from qrmem.config import Settings
from qrmem.errors import ModelOutputError, UsageError
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import AskContext, ChatReply, ChatRequest, Passage, Reading, Segment

TOKENIZER = BuiltinTokenizer()
READ = {"entities": ["Ann Lee|PERSON"], "relations": [], "questions": []}
VERDICT = {"reasoning": "It says so.", "action": -2, "answer": "Ann Lee", "quotes": []}


class Thinker:
    """Reasons with a number of hidden tokens before each reply; a cut reply has no text."""

    name = "thinker"

    def __init__(self, hidden: int, *, tells: bool = True) -> None:
        self.hidden = hidden
        self.tells = tells
        self.requests: list[ChatRequest] = []
        self.cut = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        await asyncio.sleep(0)
        text = json.dumps(VERDICT if request.stage == "judge" else READ)
        size = TOKENIZER.count(text)
        if self.hidden + size > request.max_tokens:
            self.cut += 1
            told = request.max_tokens if self.tells else 0
            return ChatReply(
                "", tokens_out=request.max_tokens, hidden_tokens=told, finish_reason="length"
            )
        told = self.hidden if self.tells else 0
        return ChatReply(text, tokens_out=self.hidden + size, hidden_tokens=told)


def reasoner(model: Any, **chosen: Any) -> PromptedReasoner:
    return PromptedReasoner(model, TOKENIZER, mode="compact", settings=Settings(**chosen))


def segment(n: int) -> Segment:
    text = f"Ann Lee crossed bridge {n}. " * 4
    return Segment(f"s{n}", "doc", n, 0, len(text), text, TOKENIZER.count(text))


@pytest.mark.parametrize("tells", [True, False])
async def test_reading_wastes_at_most_one_call(tells: bool) -> None:
    model = Thinker(1600, tells=tells)
    reading = reasoner(model, window=16_384)
    made = await asyncio.gather(*(reading.extract(segment(n), Reading()) for n in range(9)))
    assert all(one.mentions for one in made)
    assert model.cut <= 2, "the first call alone: at 512, then at 1,024"
    assert len(model.requests) == 9 + model.cut


async def test_a_question_is_answered_once_the_reply_has_room() -> None:
    model = Thinker(900)
    reading = reasoner(model, window=8_192)
    context = AskContext("Who crossed?", window=8_192)
    room = reading.room(context)
    verdict = await reading.judge(context, [Passage("S1", segment(1))])
    assert (verdict.is_answerable, verdict.answer) == (True, "Ann Lee")
    assert model.cut == 1
    assert reading.room(context) <= room - 2_000, "the room comes out of the pack"
    await reading.judge(context, [Passage("S1", segment(2))])
    assert model.cut == 1


async def test_a_window_without_room_for_the_reasoning_says_so_after_one_call() -> None:
    model = Thinker(3_000)
    reading = reasoner(model, window=1_500)
    context = AskContext("Who crossed?", window=1_500)
    passages = [Passage("S1", segment(n)) for n in range(20)]
    verdict = await reading.judge(context, passages)
    assert not verdict.is_answerable
    assert "cut off at the token limit" in verdict.problem
    assert len(model.requests) <= 2
    with pytest.raises(ModelOutputError):
        await reading.extract(segment(1), Reading())


async def test_a_model_that_does_not_reason_gets_no_room_for_it() -> None:
    model = Thinker(0)
    reading = reasoner(model, window=4_096)
    context = AskContext("Who crossed?", window=4_096)
    room = reading.room(context)
    for n in range(3):
        await reading.judge(context, [Passage("S1", segment(n))])
    assert reading.room(context) == room


async def test_the_reasoning_effort_is_sent_by_stage() -> None:
    model = Thinker(0)
    reading = reasoner(model, reasoning_effort="low, answering=high", window=4_096)
    await reading.extract(segment(1), Reading())
    await reading.judge(AskContext("Who crossed?", window=4_096), [Passage("S1", segment(2))])
    assert [(r.stage, r.effort) for r in model.requests] == [("extract", "low"), ("judge", "high")]


@pytest.mark.parametrize("wrong", ["=low", "reading=", "3", "reading=low=high"])
def test_a_reasoning_effort_that_is_none_is_refused(wrong: str) -> None:
    with pytest.raises(UsageError, match="reasoning_effort"):
        Settings(reasoning_effort=wrong)
