"""What is recalled of a conversation within a token budget, and answers from it."""

from dataclasses import dataclass
from typing import Literal

from qrmem.errors import UsageError
from qrmem.eval.harness import Harness
from qrmem.eval.memories import OpenMemory
from qrmem.eval.records import Context, Item, Prediction
from qrmem.eval.registry import system
from qrmem.eval.systems.reading import answer_from
from qrmem.memory.chat.conversation import Chat
from qrmem.memory.chat.recall import recalled
from qrmem.types.options import RecallMethod, RecallOptions
from qrmem.types.turns import turn_number

_DEPTH = 300
"""Turns of a ranking that the budget is filled from."""


@system("recall-search", "turns by search, within a budget", "ours", how="search")
@system("recall-embedder", "turns by cosine, within a budget", "", how="cosine")
@system("recall-bm25", "turns by BM25, within a budget", "", how="bm25")
@system("recall-fragrel", "turns by recall(how='fragrel')", "FragRel", how="fragrel")
@system("recall", "turns by recall, within a budget", "ours")
@dataclass(frozen=True, slots=True, kw_only=True)
class FilledBudget:
    """Takes the best turns that fit a budget, reads them in order of time.

    Attributes:
        tokens: upper bound of the turns' texts together.
    """

    how: Literal["turns", "fragrel", "bm25", "cosine", "search"] = "turns"
    tokens: int = 2000

    @property
    def needs(self) -> frozenset[str]:
        """What has to be there."""
        return frozenset({"embedder"} if self.how == "cosine" else ())

    ranks = True

    async def __call__(self, item: Item, context: Context, harness: Harness) -> Prediction:
        """Answer one item."""
        if not all(turn_number(d.id or "", d.metadata) for d in context.documents):
            raise UsageError("it recalls turns of a conversation: it runs on LoCoMo alone")
        async with harness.memory(context) as memory:
            ids = await self._turns(memory, item.question)
            found = Prediction(ranked=tuple(ids), memory=memory.key)
            if harness.retrieve:
                return found
            segments = await memory.store.segments(memory.ns, documents=sorted(ids))
            read = memory.passages(segments)
            return await answer_from(harness, item, read, found=found, context=context)

    async def _turns(self, memory: OpenMemory, question: str) -> list[str]:
        """Return the ids of turns that fit the budget together."""
        if self.how in ("turns", "fragrel"):
            chat = Chat(
                memory.store,
                memory.ns,
                memory.searcher,
                memory.fragments,
                memory.tools.counter.count,
            )
            how: RecallMethod = "turns" if self.how == "turns" else "fragrel"
            found = await recalled(
                chat, RecallOptions(prompt=question, tokens=self.tokens, how=how)
            )
            return [turn.id for turn in (*found.related, *found.recent)]
        if self.how == "search":
            hits = await memory.searcher.search(question, k=_DEPTH)
            ids = [hit.segment_id for hit in hits]
        else:
            ids = list(await memory.searcher.ranking(question, self.how, _DEPTH))
        kept: dict[str, None] = {}
        left = self.tokens
        for segment in await memory.segments(ids):
            size = memory.tools.counter.count(segment.text)
            if size <= left:
                kept[segment.document_id] = None
                left -= size
        return list(kept)
