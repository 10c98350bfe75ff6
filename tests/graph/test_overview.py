"""Questions about a whole text: the plan, the notes on every part, the answer, its citations."""

import json
import re
from typing import Any

import pytest
from contract.reference import ReferenceStore
from fakes import ScriptedReasoner
from graph.worlds import Part, memory, outcome_of

from qrmem.agents import Outcome, Search
from qrmem.agents.search.start import sides
from qrmem.agents.strategies import overview
from qrmem.graphstore.reads import BestEffortWriter
from qrmem.llm.prompting import Caller, TokenBudget
from qrmem.llm.run import Run
from qrmem.prompts import load_prompts
from qrmem.retrieval.searcher import Searcher
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import ChatReply, ChatRequest
from qrmem.types.options import AskOptions

TEXTS = [f"In year {n} the town of Hask built bridge number {n} over the river." for n in range(40)]


class Noting:
    """Notes the last year of a part, quotes its first segment, and joins notes by their years."""

    name = "noting"

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        said = request.messages[-1].content
        years = re.findall(r"year (\d+)", said)
        label = re.search(r"\bS\d+\b", said)
        first = re.search(r"In year \d+ the town", said)
        reply: dict[str, Any] = {
            "reasoning": "In order.",
            "answer": f"year {years[0]} to year {years[-1]}" if years else "",
            "quotes": [f"{label[0]}|{first[0]}"] if label and first else [],
        }
        return ChatReply(json.dumps(reply))


async def ask(store: ReferenceStore, chat: Noting, question: str, **options: Any) -> Outcome:
    run = Search(
        parts=Run(
            ScriptedReasoner(room=120),
            caller=Caller(chat, TokenBudget(BuiltinTokenizer()), load_prompts()),
        ),
        searcher=Searcher(store, "ns"),
        writer=BestEffortWriter(store),
        options=AskOptions(question=question, window=2000, **options),
    )
    return await outcome_of(run)


async def town() -> ReferenceStore:
    return await memory(*(Part(text) for text in TEXTS))


async def test_every_part_is_read_in_order_and_the_answer_spans_the_whole() -> None:
    chat = Noting()
    outcome = await ask(await town(), chat, "How does Hask change?", strategy="overview")
    assert (outcome.status, outcome.text) == ("answered", "year 0 to year 39")
    read = [one.segment_id for step in outcome.steps for one in step.read]
    assert read == [f"s{n}" for n in range(40)]
    plan = re.search(r"plan: (\d+) of \1 parts .* (\d+) calls", outcome.steps[0].reason)
    assert plan is not None
    assert len(chat.requests) == int(plan[2])
    assert outcome.citations
    assert all(citation.quote.startswith("In year") for citation in outcome.citations)


async def test_a_question_about_the_whole_takes_few_parts_unless_the_strategy_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(overview, "UNASKED", 3)
    chat = Noting()
    outcome = await ask(await town(), chat, "What is this book about?")
    assert outcome.strategy == "overview"
    assert sum(request.stage == "overview" for request in chat.requests) == len(chat.requests)
    assert outcome.steps[0].reason.startswith("plan: 3 of ")
    read = [one.segment_id for step in outcome.steps for one in step.read]
    assert (read[0], read[-1]) == ("s0", "s39")


@pytest.mark.parametrize(
    ("question", "is_whole"),
    [
        ("What is this book about?", True),
        ("Summarise the story.", True),
        ("How does Elizabeth change in the course of the novel?", True),
        ("Who killed William?", False),
        ("What is the name of the ship?", False),
    ],
)
def test_which_questions_are_about_the_whole(question: str, *, is_whole: bool) -> None:
    assert overview.is_about_all(question) is is_whole


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is the difference between Hask and Skarrow?", ("Hask", "Skarrow")),
        ("Compare the old mill with the new one.", ("the old mill", "the new one")),
        ("What do Ann and Bob have in common?", ("Ann", "Bob")),
        ("Who compared the prices?", ()),
    ],
)
def test_the_sides_of_a_comparison(question: str, expected: tuple[str, ...]) -> None:
    assert sides(question) == expected


async def test_a_comparison_reads_for_each_side() -> None:
    parts = [Part(f"Hask is large, as page {n} says.") for n in range(12)]
    store = await memory(*parts, Part("Skarrow lies by the sea."))
    reasoner = ScriptedReasoner(room=400)
    run = Search(
        parts=Run(reasoner),
        searcher=Searcher(store, "ns"),
        writer=BestEffortWriter(store),
        options=AskOptions(
            question="How do Hask and Skarrow differ?", hits=4, max_trials=1, window=4096
        ),
    )
    await outcome_of(run)
    assert "Skarrow lies by the sea." in reasoner.judged[0]
    assert any("Hask" in text for text in reasoner.judged[0])
