"""Agent baselines: MemWalker, ReadAgent, DECOM; each needs a chat model."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from qrmem.agents import baselines
from qrmem.answering.multiple_choice import shown
from qrmem.errors import ModelOutputError
from qrmem.eval.harness import Harness
from qrmem.eval.items import Context, Item, Prediction
from qrmem.eval.registry import system
from qrmem.eval.systems.passage_reader import answer_from, predicted, ranking
from qrmem.eval.systems.retrieval_baselines import in_document_order
from qrmem.prompts.replies import QuestionsReply
from qrmem.types import Step, Usage, Verdict

MODEL = frozenset({"model"})
Made = TypeVar("Made")
Answered = tuple[Verdict, list[Step]]
_REFERENCE = re.compile(r"#(\d+)")


@system("memwalker", "a tree of summaries, walked", "MemWalker")
@dataclass(frozen=True, slots=True, kw_only=True)
class MemWalker:
    """Walks a tree of summaries; building the tree counts as construction."""

    leaf_tokens: int = baselines.LEAF_TOKENS

    needs = MODEL

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""

        async def made(own: Harness) -> baselines.Tree:
            pieces = harness.texts(context, self.leaf_tokens)
            return await baselines.build_tree(own.caller, pieces, harness.settings.window)

        async def answered(tree: baselines.Tree) -> Answered:
            walk = baselines.TreeWalk(tree, harness.caller, harness.reasoner, harness.asked(item))
            return await baselines.walk(walk, is_forced=harness.is_forced(item))

        return await _answer_by_agent(
            harness, f"memwalker {self.leaf_tokens} {context.id}", made, answered
        )


@system(
    "read-agent-s", "gists, pages looked up one by one", "ReadAgent", look_up="sequential", most=6
)
@system("read-agent-p", "gists, pages looked up at once", "ReadAgent", look_up="parallel", most=5)
@dataclass(frozen=True, slots=True, kw_only=True)
class ReadAgent:
    """Remembers gists and looks pages up; making the gists counts as construction.

    Attributes:
        most: maximum number of pages to look up.
    """

    look_up: Literal["parallel", "sequential"]
    most: int

    needs = MODEL

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""

        async def made(own: Harness) -> list[baselines.GistPage]:
            pages: list[baselines.GistPage] = []
            for document in context.documents:
                pieces = harness.texts(replace(context, documents=(document,)), _PIECE_TOKENS)
                pages += await baselines.read_pages(own.caller, pieces, harness.settings.window)
            return pages

        async def answered(pages: list[baselines.GistPage]) -> Answered:
            reading = baselines.PageReader(
                pages,
                harness.caller,
                harness.reasoner,
                harness.asked(item),
                self.look_up == "sequential",
                self.most,
            )
            return await baselines.answer_by_pages(reading, is_forced=harness.is_forced(item))

        return await _answer_by_agent(harness, f"pages {context.id}", made, answered)


_PIECE_TOKENS = 100
"""Size of the pieces between which a page may end: a few sentences, in tokens."""


@system("decom", "sub-questions first", "QRMeM's baseline")
@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposed:
    """DECOM: sub-questions, answered in turn over BM25's best segments, then the question.

    Attributes:
        k: number of segments per question.
    """

    k: int = 3

    needs = MODEL

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        parts: list[str] = []
        answers: list[str] = []
        steps: tuple[Step, ...] = ()
        async with harness.memory(context) as memory:
            read: dict[str, None] = {}
            scores: dict[str, float] = {}
            for part in await _parts(item, harness):
                question = _REFERENCE.sub(lambda m: _earlier(answers, int(m[1])), part)
                scored = await memory.searcher.ranking(question, "bm25", self.k)
                scores |= scored
                read.update(dict.fromkeys(scored))
                part_answer = await answer_from(
                    harness,
                    Item(item.id, question, (), item.context),
                    memory.passages(await memory.segments(scored)),
                    found=Prediction(steps=steps),
                    scores=scored,
                )
                parts.append(question)
                answers.append(part_answer.text)
                steps = (
                    *part_answer.steps[:-1],
                    replace(part_answer.steps[-1], reason=f"{question} {part_answer.text}"),
                )
            part_ranking = await memory.searcher.ranking(item.question, "bm25", self.k)
            scores |= part_ranking
            ranked = await memory.segments(dict.fromkeys([*part_ranking, *read]))
            return await answer_from(
                harness,
                replace(item, question=_with_notes(item.question, parts, answers)),
                memory.passages(in_document_order(ranked[: 2 * self.k])),
                found=replace(ranking(memory, ranked), steps=steps),
                scores=scores,
            )


async def _parts(item: Item, harness: Harness) -> list[str]:
    """Return the sub-questions, without the last one if it repeats the question itself."""
    try:
        call = await harness.caller.call(
            "decompose",
            QuestionsReply,
            lambda kept: dict(question=shown(item.question, item.choices)),
            window=harness.settings.window,
            reply=256,
        )
    except ModelOutputError:
        return []
    questions = [question.strip() for question in call.value.questions if question.strip()]
    return [question for question in questions if question != item.question][:5]


def _earlier(answers: list[str], n: int) -> str:
    return answers[n - 1] if 0 < n <= len(answers) and answers[n - 1] else f"#{n}"


def _with_notes(question: str, parts: list[str], answers: list[str]) -> str:
    notes = [f"{p} {a}" for p, a in zip(parts, answers, strict=True) if a]
    return f"{question}\nFound so far: {' '.join(notes)}" if notes else question


async def _answer_by_agent(
    harness: Harness,
    key: str,
    made: Callable[[Harness], Awaitable[Made]],
    answered: Callable[[Made], Awaitable[Answered]],
) -> Prediction:
    """Answer by an agent from its preparation of the context, which is made once in a run.

    Args:
        key: key of the preparation.
        made: prepares the context; its calls count as construction.
        answered: answers from the preparation.
    """
    agent_data, stages = await harness.prepared(key, made)
    verdict, steps = await answered(agent_data)
    read = [s.segment_id for step in steps if step.action == "read" for s in step.read]
    prediction_found = Prediction(read=tuple(read), steps=tuple(steps), usage=Usage(stages))
    return predicted(verdict, prediction_found)
