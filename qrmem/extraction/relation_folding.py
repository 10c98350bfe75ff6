"""Folding two descriptions of one relation with a chat model (QRMeM, Appendix E)."""

from collections.abc import Sequence
from dataclasses import dataclass

from qrmem.errors import ModelOutputError
from qrmem.extraction.prompt_context import background, pieces
from qrmem.llm.prompting import Caller
from qrmem.prompts import catalogue, fenced
from qrmem.text.names import split_key
from qrmem.types import Fact, Reading

Kept = Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Folder:
    """Asks for the questions to settle, then for the merged description, in one call."""

    caller: Caller
    window: int
    reserve: int

    async def fold(self, first: Fact, second: Fact, summary: str, texts: tuple[str, str]) -> str:
        """Return one description; both, side by side, where no reply can be used."""
        pair = " and ".join(split_key(key)[0] for key in (first.head, first.tail))

        def inputs(kept: Kept) -> catalogue.FoldInputs:
            return catalogue.FoldInputs(
                background=background(Reading(), kept[0]),
                pair=fenced(pair),
                first=fenced("\n".join((" ".join(kept[1]), first.description)).strip()),
                second=fenced("\n".join((" ".join(kept[2]), second.description)).strip()),
            )

        try:
            called = await self.caller.call(
                catalogue.FOLD,
                inputs,
                [pieces(summary), *(pieces(text) for text in texts)],
                window=self.window,
                reply=self.reserve,
            )
        except ModelOutputError:
            return side_by_side(first.description, second.description)
        merged = " ".join(called.value.description.split())
        return merged or side_by_side(first.description, second.description)


def side_by_side(first: str, second: str) -> str:
    """Return both descriptions, the second one only if it says something else."""
    return first if second in first else f"{first}; {second}"
