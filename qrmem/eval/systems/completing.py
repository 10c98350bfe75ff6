"""Unfinished code continued from its repository: RepoCoder, with FragRel or without (F17, B11)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from qrmem.errors import UsageError
from qrmem.eval.bench import Bench, Tally
from qrmem.eval.memories import Build, Shelf
from qrmem.eval.metrics.overlap import edit_similarity
from qrmem.eval.records import Context, Found, Item
from qrmem.eval.systems.agents import caller_of
from qrmem.eval.systems.retrieved import DEPTH
from qrmem.prompts import catalogue
from qrmem.retrieval.fragments import FragmentSettings
from qrmem.text.code.languages import CODE_KEY
from qrmem.types import ScoredSegment, Segment, Step

LINES = 20
"""Of the query, as of a fragment."""
BUDGET = 2_000
"""Tokens of all fragments together (RepoCoder's, for a 4K window)."""
REPLY = 200
_RULE = "# " + "-" * 50
_PART = re.compile(r"lines? (\d+)(?:-(\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """Continues code from the fragments that are best for the lines before the hole.

    Attributes:
        rounds: 0 sees no other code; 1 is single-step retrieval; each further one asks with what
            was predicted before (RepoCoder).
        oracle: ask with the true code around the hole: RepoCoder's bound of asking again.
        pick: which round's code counts: the last, or the one nearest to the truth, which is the
            bound of stopping at the right round and, as `oracle`, nothing that a user can run.
        alpha: weight of the surroundings by the code relation; 0 is the retriever alone.
        score: `bm25` in FragRel; `jaccard`, over sets of tokens, in RepoCoder's own code.
        pieces: whose tokens: RepoCoder's are `tiktoken:p50k_base`; `builtin` needs no file.
        top: fragments at most.
    """

    rounds: int = 1
    oracle: bool = False
    pick: Literal["last", "best"] = "last"
    alpha: float = 0.0
    score: Literal["bm25", "jaccard"] = "bm25"
    pieces: Literal["builtin", "p50k_base"] = "builtin"
    top: int = 10

    @property
    def needs(self) -> frozenset[str]:
        """A chat model."""
        return frozenset({"model"})

    @property
    def ranks(self) -> bool:
        """Unless it sees no other code."""
        return self.rounds > 0

    async def __call__(self, item: Item, context: Context, bench: Bench) -> Found:
        """Answer one item."""
        if "context_start_line" not in item.labels:
            raise UsageError("it continues code: it runs on RepoEval alone")
        tally = Tally(bench.listener)
        if not self.rounds:
            return await _completed(item, (), bench, tally, Found())
        async with bench.memory(as_code(context), Build()) as shelf:
            hidden = await _hidden(shelf, item)
            found = Found(memory=shelf.key)
            tries: list[Found] = []
            for _ in range(self.rounds):
                asked = self._query(item, context, found.text)
                ranked = await self._ranked(shelf, asked, hidden)
                found = replace(
                    found,
                    ranked=tuple(dict.fromkeys(segment.document_id for segment in ranked)),
                    segments=tuple(segment.id for segment in ranked),
                )
                if bench.retrieve:
                    return found
                found = await _completed(item, ranked[: self.top], bench, tally, found)
                tries.append(found)
            return self._picked(tries, item)

    def _picked(self, tries: Sequence[Found], item: Item) -> Found:
        """Return the try that counts, with what all of them took; of equal ones the first."""
        if self.pick == "last":
            return tries[-1]
        best = max(tries, key=lambda found: edit_similarity(found.text, item.answers))
        return replace(best, steps=tries[-1].steps, usage=tries[-1].usage)

    def _query(self, item: Item, context: Context, predicted: str) -> str:
        """Return the lines that are asked with: before the hole, or around it."""
        before = item.question.splitlines()
        after = [line for line in predicted.splitlines() if line.strip()]
        if self.oracle:
            (text,) = (d.text for d in context.documents if d.id == item.labels["file"])
            after = text.splitlines()[int(item.labels["line"]) :]
        if not after:
            return "\n".join(before[-LINES:])
        return "\n".join([*before[-LINES // 2 :], *after[: LINES // 2]])

    async def _ranked(self, shelf: Shelf, asked: str, hidden: frozenset[str]) -> list[Segment]:
        settings = FragmentSettings(
            relation="code" if self.alpha else "structure",
            alpha=self.alpha,
            score=self.score,
            pieces="builtin" if self.pieces == "builtin" else f"tiktoken:{self.pieces}",
        )
        assessed = await shelf.fragments.assess(asked, settings=settings, hidden=hidden)
        best = list(assessed.best(DEPTH)) if assessed else []
        found = {segment.id: segment for segment in await shelf.store.segments(shelf.ns, best)}
        return [found[id] for id in best]


def as_code(context: Context) -> Context:
    """Return a repository whose documents are known as source files."""
    documents = tuple(
        replace(document, metadata={**document.metadata, CODE_KEY: "python"})
        for document in context.documents
    )
    return replace(context, documents=documents)


async def _hidden(shelf: Shelf, item: Item) -> frozenset[str]:
    """Return the fragments that would give the hole away: of its file, from the prompt on."""
    first = int(item.labels["context_start_line"])
    segments = await shelf.store.segments_of(shelf.ns, item.labels["file"])
    return frozenset(segment.id for segment in segments if _last_line(segment) > first)


def _last_line(segment: Segment) -> int:
    found = _PART.match(segment.part)
    assert found is not None
    return int(found[2] or found[1])


async def _completed(
    item: Item, ranked: Sequence[Segment], bench: Bench, tally: Tally, found: Found
) -> Found:
    """Ask the model to go on, the best fragment nearest to the code."""
    run = bench.reader(tally)
    count = bench.tools.counter.count
    kept = _within(ranked, count)
    blocks = [_block(segment) for segment in kept]
    called = await caller_of(run, bench).call(
        catalogue.COMPLETE,
        lambda groups: catalogue.CompleteInputs(
            fragments="\n".join(reversed(groups[0])),
            path=item.labels["file"],
            code="\n".join(reversed(groups[1])),
        ),
        # What is left out first: the worst fragment, then the line farthest from the hole.
        [blocks, item.question.split("\n")[::-1]],
        window=bench.settings.window,
        reply=REPLY,
    )
    shown = kept[: len(called.kept[0])]
    step = Step(
        n=len(found.steps) + 1,
        action="read",
        read=tuple(ScoredSegment(s.id, 0.0, s.tokens) for s in shown),
        reason=called.value.code,
        tokens=called.tokens,
    )
    return replace(
        found,
        text=called.value.code,
        status="answered",
        read=tuple(segment.id for segment in shown),
        steps=(*found.steps, step),
        usage=tally.usage,
    )


def _within(ranked: Sequence[Segment], count: Callable[[str], int]) -> list[Segment]:
    """Return the best fragments within the budget; one that does not fit is passed over."""
    left, kept = BUDGET, []
    for segment in ranked:
        tokens = count(_block(segment))
        if tokens <= left:
            left -= tokens
            kept.append(segment)
    return kept


def _block(segment: Segment) -> str:
    code = "\n".join(f"# {line}".rstrip() for line in segment.text.rstrip().splitlines())
    named = f"# {segment.document_id}, {segment.part}"
    return f"# of the repository:\n{named}\n{_RULE}\n{code}\n{_RULE}"
