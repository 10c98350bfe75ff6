"""Completion of unfinished code from its repository."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from qrmem.errors import UsageError
from qrmem.eval.harness import Harness
from qrmem.eval.items import Build, Context, Item, Prediction
from qrmem.eval.memories import OpenMemory
from qrmem.eval.metrics import edit_similarity
from qrmem.eval.registry import system
from qrmem.eval.systems.passage_reader import ranking
from qrmem.eval.systems.retrieval_baselines import DEPTH
from qrmem.prompts.replies import CodeReply
from qrmem.retrieval.fragments import FragmentSettings
from qrmem.text.code.languages import CODE_KEY
from qrmem.types import ScoredSegment, Segment, Step

LINES = 20
"""Number of lines of the query, and of a fragment."""
BUDGET = 2_000
"""Maximum tokens of all fragments together (RepoCoder's, for a 4K window)."""
REPLY = 200
_RULE = "# " + "-" * 50
_PART = re.compile(r"lines? (\d+)(?:-(\d+))?")


@system("repocoder", "retrieval repeated with the predicted code", "RepoCoder", rounds=2)
@system("complete", "code continued from its repository, one retrieval", "FragRel")
@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """Completes code from the best fragments for the lines before the hole.

    Attributes:
        rounds: 0 uses no other code; 1 is single-step retrieval; each further round queries with
            the previous prediction (RepoCoder).
        oracle: query with the true code around the hole: RepoCoder's upper bound of further rounds.
        pick: round whose code counts: the last one, or the one nearest to the true code. The latter
            is an upper bound that, like `oracle`, needs the true code.
        alpha: weight of the environment by the code relation; 0 is only the retriever.
        score: `bm25` in FragRel; `jaccard`, over sets of tokens, in RepoCoder's own code.
        pieces: tokenizer for `jaccard`: RepoCoder's is `tiktoken:p50k_base`; `builtin` needs no
            file.
        top: maximum number of fragments.
    """

    rounds: int = 1
    oracle: bool = False
    pick: Literal["last", "best"] = "last"
    alpha: float = 0.0
    score: Literal["bm25", "jaccard"] = "bm25"
    pieces: Literal["builtin", "p50k_base"] = "builtin"
    top: int = 10

    needs = frozenset({"model"})

    @property
    def ranks(self) -> bool:
        """Whether it uses other code."""
        return self.rounds > 0

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        if "context_start_line" not in item.labels:
            raise UsageError("it continues code: it runs on RepoEval alone")
        if not self.rounds:
            return await _completed(item, (), harness, Prediction(), {})
        async with harness.memory(as_code(context), Build()) as memory:
            hidden = await _hidden(memory, item)
            prediction = Prediction()
            tries: list[Prediction] = []
            segments_shown: Sequence[Segment] | None = None
            for _ in range(self.rounds):
                query = self._query(item, context, prediction.text)
                ranked, scores = await self._ranked(memory, query, hidden)
                prediction = replace(ranking(memory, ranked), steps=prediction.steps)
                if harness.retrieve:
                    return prediction
                if segments_shown == (segments_shown := ranked[: self.top]):
                    break  # the same request would get the same reply
                prediction = await _completed(item, segments_shown, harness, prediction, scores)
                tries.append(prediction)
            return self._pick(tries, item)

    def _pick(self, tries: Sequence[Prediction], item: Item) -> Prediction:
        """Return the round that counts, with the cost of all rounds; of equal ones the first."""
        if self.pick == "last":
            return tries[-1]
        best = max(tries, key=lambda found: edit_similarity(found.text, item.answers))
        return replace(best, steps=tries[-1].steps)

    def _query(self, item: Item, context: Context, predicted: str) -> str:
        """Return the lines of the query: before the hole, or around it."""
        before = item.question.splitlines()
        after = [line for line in predicted.splitlines() if line.strip()]
        if self.oracle:
            (text,) = (d.text for d in context.documents if d.id == item.labels["file"])
            after = text.splitlines()[int(item.labels["line"]) :]
        if not after:
            return "\n".join(before[-LINES:])
        return "\n".join([*before[-LINES // 2 :], *after[: LINES // 2]])

    async def _ranked(
        self, memory: OpenMemory, asked: str, hidden: frozenset[str]
    ) -> tuple[list[Segment], Mapping[str, float]]:
        settings = FragmentSettings(
            relation="code" if self.alpha else "structure",
            alpha=self.alpha,
            score=self.score,
            pieces="builtin" if self.pieces == "builtin" else f"tiktoken:{self.pieces}",
        )
        assessed = await memory.fragments.assess(asked, settings=settings, hidden=hidden)
        best = assessed.best(DEPTH) if assessed else {}
        return await memory.segments(best), best


def as_code(context: Context) -> Context:
    """Return a repository whose documents are marked as source files."""
    documents = tuple(
        replace(document, metadata={**document.metadata, CODE_KEY: "python"})
        for document in context.documents
    )
    return replace(context, documents=documents)


async def _hidden(memory: OpenMemory, item: Item) -> frozenset[str]:
    """Return the fragments that would reveal the hole: those of its file after the prompt."""
    first = int(item.labels["context_start_line"])
    segments = await memory.store.segments(memory.ns, documents=[item.labels["file"]])
    return frozenset(segment.id for segment in segments if _last_line(segment) > first)


def _last_line(segment: Segment) -> int:
    match = _PART.match(segment.part)
    assert match is not None
    return int(match[2] or match[1])


async def _completed(
    item: Item,
    ranked: Sequence[Segment],
    harness: Harness,
    found: Prediction,
    scores: Mapping[str, float],
) -> Prediction:
    """Ask the model for the continuation; the best fragment is nearest to the code."""
    segments_kept = _within(ranked, harness.tools.counter.count)
    blocks = [_block(segment) for segment in segments_kept]
    call = await harness.caller.call(
        "complete",
        CodeReply,
        lambda groups: dict(
            fragments="\n".join(reversed(groups[0])),
            path=item.labels["file"],
            code="\n".join(reversed(groups[1])),
        ),
        # Left out first: the worst fragment, then the line farthest from the hole.
        [blocks, item.question.split("\n")[::-1]],
        window=harness.settings.window,
        reply=REPLY,
    )
    segments_shown = segments_kept[: len(call.kept[0])]
    step = Step(
        n=len(found.steps) + 1,
        action="read",
        read=tuple(ScoredSegment(s.id, scores[s.id], s.tokens) for s in segments_shown),
        reason=call.value.code,
        tokens=call.tokens,
    )
    return replace(
        found,
        text=call.value.code,
        status="answered",
        read=tuple(segment.id for segment in segments_shown),
        steps=(*found.steps, step),
    )


def _within(ranked: Sequence[Segment], count: Callable[[str], int]) -> list[Segment]:
    """Return the best fragments within the budget; one that does not fit is skipped."""
    tokens_left, segments_kept = BUDGET, []
    for segment in ranked:
        tokens = count(_block(segment))
        if tokens <= tokens_left:
            tokens_left -= tokens
            segments_kept.append(segment)
    return segments_kept


def _block(segment: Segment) -> str:
    code = "\n".join(f"# {line}".rstrip() for line in segment.text.rstrip().splitlines())
    heading = f"# {segment.document_id}, {segment.part}"
    return f"# of the repository:\n{heading}\n{_RULE}\n{code}\n{_RULE}"
