"""A search with a chat model reads on: what later readings hold, look for, quote and may claim."""

from collections.abc import Sequence
from typing import Any

import pytest
from fakes import ScriptedReasoner
from graph.worlds import Part, ask, memory

from qrmem.errors import ModelOutputError
from qrmem.types import AskContext, Finding, LedgerRow, Passage, Quote, Verdict

RATINGS = (
    Part("The first film got minus four.", (("film", "got", "minus four"),)),
    Part("The second review: minus six.", (("review", "says", "minus six"),)),
    Part("The third critic gave minus one.", (("critic", "gave", "minus one"),)),
    Part("Bread is baked at dawn.", (("bread", "is baked at", "dawn"),)),
)


class Notes:
    """Judges answerable once notes and passages hold all words; keeps each passage's text."""

    def __init__(self, *words: str, look_for: Sequence[str] = ()) -> None:
        self.words = words
        self.look_for = tuple(look_for)
        self.seen: list[list[str]] = []
        self.contexts: list[AskContext] = []

    def __call__(self, context: AskContext, passages: Sequence[Passage], force: bool) -> Verdict:
        self.seen.append([p.segment.text for p in passages])
        self.contexts.append(context)
        held = " ".join((*context.notes, *(p.segment.text for p in passages)))
        if all(word in held for word in self.words):
            quotes = tuple(Quote("", word) for word in self.words)
            return Verdict(True, "all", quotes=quotes, reason="All are there.")
        return Verdict(
            False,
            reason="Not all ratings are there.",
            look_for=self.look_for,
            findings=tuple(Finding(p.label, p.segment.text) for p in passages),
        )


async def test_no_passage_is_read_twice_and_notes_say_what_was_found() -> None:
    judge = Notes("minus four", "minus six", "minus one", look_for=["review", "critic"])
    reasoner = ScriptedReasoner(judge, room=14)
    outcome = await ask(await memory(*RATINGS), reasoner, "Which ratings has the film?", hits=1)
    assert outcome.status == "answered"
    texts = [text for reading in judge.seen for text in reading]
    assert len(judge.seen) == 3
    assert len(texts) == len(set(texts)) == 3
    notes = judge.contexts[-1].notes
    assert "S1: The first film got minus four." in notes
    assert len(notes) == 3, "two facts, and the reason once"


async def test_an_answer_may_quote_what_an_earlier_reading_held() -> None:
    judge = Notes("minus four", "minus six", look_for=["review"])
    store = await memory(*RATINGS)
    outcome = await ask(
        store, ScriptedReasoner(judge, room=14), "Which ratings has the film?", hits=1
    )
    assert {citation.quote for citation in outcome.citations} == {"minus four", "minus six"}
    assert {citation.segment_id for citation in outcome.citations} == {"s0", "s1"}


async def test_the_trail_says_what_was_looked_for() -> None:
    judge = Notes("minus one", look_for=["what a critic gave"])
    outcome = await ask(
        await memory(*RATINGS), ScriptedReasoner(judge, room=14), "Is the film good?", hits=1
    )
    (search,) = [step for step in outcome.steps if step.action == "search"]
    assert search.query == "what a critic gave"
    assert next(one.segment_id for one in search.brought) == "s2"
    assert outcome.status == "answered"


async def test_a_model_that_always_looks_for_the_same_ends_in_an_abstention() -> None:
    judge = Notes("never there", look_for=["the film"])
    outcome = await ask(await memory(*RATINGS), ScriptedReasoner(judge, room=14), "The film?")
    assert outcome.status == "unanswerable"
    texts = [text for reading in judge.seen for text in reading]
    assert len(texts) == len(set(texts))
    assert len(judge.seen) <= 5


async def test_an_edge_between_two_known_entities_leads_to_the_passage_that_states_it() -> None:
    parts = (
        Part("Ann lives. Bob lives.", (), ("Ann", "Bob")),
        Part("Quietly she wed him.", (("Ann", "wed", "Bob"),)),
        Part("Snow fell.", (("snow", "fell in", "May"),)),
    )
    judge = Notes("wed him")
    outcome = await ask(
        await memory(*parts), ScriptedReasoner(judge, room=14), "Ann lives, Bob lives?", hits=1
    )
    assert outcome.status == "answered"
    taken = [edge for step in outcome.steps for edge in step.edges if edge.taken]
    assert [(edge.head, edge.tail) for edge in taken] == [("Ann", "Bob")]


@pytest.mark.parametrize(("reader", "is_shown"), [("prompted:x", True), ("local.v4", False)])
async def test_statements_of_a_model_are_shown_and_guesses_by_rules_are_not(
    reader: str, is_shown: bool
) -> None:
    store = await memory(*RATINGS)
    await store.record("ns", [(LedgerRow(f"s{n}", "ok", "", reader), None) for n in range(4)])
    judge = Notes("never there")
    question = "What did the critic say, and the review, and the film?"
    await ask(store, ScriptedReasoner(judge, room=80), question, hits=1)
    statements = [line for context in judge.contexts for line in context.statements]
    assert bool(statements) == is_shown
    if is_shown:
        first, (shown,) = judge.contexts[0], judge.seen[0]
        assert first.statements
        assert not any(line.split(": ")[-1].split()[-1] in shown for line in first.statements)


@pytest.mark.parametrize("strategy", ["reflection", "entity-trial", "graph-expansion", "passages"])
async def test_a_verdict_that_cannot_be_read_is_no_verdict(strategy: str) -> None:
    def judge(context: Any, passages: Any, force: bool) -> Verdict:
        return Verdict(is_answerable=False, problem="the reply was cut off at the token limit")

    reasoner = ScriptedReasoner(judge, room=30)
    with pytest.raises(ModelOutputError, match=r"not known whether .* cut off .*--window"):
        await ask(await memory(*RATINGS), reasoner, "Which ratings has the film?", strategy)
    assert len(reasoner.judged) <= 2, "no further reading is paid for"


async def test_after_an_unreadable_verdict_fewer_passages_are_read_again() -> None:
    problems = ["the reply was cut off", "", ""]

    def judge(context: Any, passages: Sequence[Passage], force: bool) -> Verdict:
        if problem := problems.pop(0):
            return Verdict(is_answerable=False, problem=problem)
        return Verdict(True, "minus four")

    reasoner = ScriptedReasoner(judge, room=40)
    outcome = await ask(await memory(*RATINGS), reasoner, "Which ratings has the film, the critic?")
    assert (outcome.status, outcome.text) == ("answered", "minus four")
    first, second = reasoner.judged
    assert set(second) < set(first)


async def test_a_forced_answer_reads_again_what_had_findings() -> None:
    judge = Notes("never there", look_for=["review"])
    reasoner = ScriptedReasoner(
        lambda c, p, force: Verdict(True, "a guess") if force else judge(c, p, force), room=24
    )
    outcome = await ask(
        await memory(*RATINGS), reasoner, "The film?", hits=1, on_exhausted="force", max_trials=2
    )
    assert outcome.status == "forced"
    assert reasoner.judged[-1], "passages are shown again"
    assert set(reasoner.judged[-1]) <= {text for reading in judge.seen for text in reading}


async def test_the_paper_reads_as_before() -> None:
    judge = Notes("never there", look_for=["review"])
    reasoner = ScriptedReasoner(judge, room=14)
    outcome = await ask(await memory(*RATINGS), reasoner, "The film?", paper_exact=True)
    assert not any(context.notes or context.statements for context in judge.contexts)
    assert "search" not in [step.action for step in outcome.steps]
