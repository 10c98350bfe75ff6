"""LLMLingua-2: the text compressed to the window by its own package, an extra (B07)."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from qrmem.eval.bench import Bench, Tally
from qrmem.eval.records import Context, Found, Item
from qrmem.eval.systems.direct import truncated
from qrmem.eval.systems.reading import answer_from
from qrmem.eval.systems.summary import whole
from qrmem.types import Passage


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed:
    """Drops words until the text fits, then reads it.

    Attributes:
        model: name or folder of the token classifier.
    """

    model: str = "microsoft/llmlingua-2-xlm-roberta-large-meetingbank"

    @property
    def needs(self) -> frozenset[str]:
        """Its package."""
        return frozenset({"llmlingua"})

    async def __call__(self, item: Item, context: Context, bench: Bench) -> Found:
        """Answer one item."""
        tally = Tally(bench.listener)
        run = bench.reader(tally)
        room = run.reasoner.room(bench.asked(item))
        texts = [f"{d.title}\n{d.text}" if d.title else d.text for d in context.documents]
        shorter = _compress(self.model, texts, room)
        passage = Passage("S1", whole(context.id, shorter, bench))
        kept = truncated(run.reasoner, [passage], room, "left")
        return await answer_from(bench, item, kept, run=run, tally=tally)


def _compress(model: str, texts: list[str], room: int) -> str:
    found = _compressor(model).compress_prompt_llmlingua2(texts, target_token=room)
    return str(found["compressed_prompt"])


@cache
def _compressor(model: str) -> Any:
    from llmlingua import PromptCompressor

    return PromptCompressor(model_name=model, use_llmlingua2=True, device_map="cpu")
