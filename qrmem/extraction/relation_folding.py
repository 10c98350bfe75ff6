"""Merging two relations of one pair of entities with a chat model (QRMeM, Appendix E)."""

from dataclasses import dataclass

from qrmem.errors import ModelOutputError
from qrmem.extraction.prompt_context import pieces
from qrmem.llm.prompting import Caller, Kept
from qrmem.prompts import fenced, fenced_if
from qrmem.prompts.replies import FoldReply
from qrmem.types import Folded


@dataclass(frozen=True, slots=True)
class Folder:
    """Asks for the questions Q_s to settle, then for the merged description, in one call."""

    caller: Caller
    window: int
    reserve: int

    async def fold(
        self,
        relations: tuple[str, str],
        texts: tuple[str, str],
        *,
        summary: str = "",
        question: str = "",
    ) -> Folded:
        """Merge two relations; see `qrmem.types.Reasoner`."""

        def inputs(kept: Kept) -> dict[str, object]:
            return dict(
                question=question,
                background=fenced_if(" ".join(kept[0])),
                segment_1=fenced(" ".join(kept[1])),
                relation_1=fenced(relations[0]),
                segment_2=fenced(" ".join(kept[2])),
                relation_2=fenced(relations[1]),
            )

        try:
            called = await self.caller.call(
                "fold",
                FoldReply,
                inputs,
                [pieces(summary), *(pieces(text) for text in texts)],
                window=self.window,
                reply=self.reserve,
            )
        except ModelOutputError:
            return Folded()
        settled = tuple(" ".join(question.split()) for question in called.value.questions)
        return Folded(" ".join(called.value.description.split()), settled)
