"""Merging two relations of one pair of entities with a chat model (QRMeM, Appendix E)."""

from qrmem.errors import ModelOutputError
from qrmem.extraction.prompt_context import PromptContext, pieces
from qrmem.llm.prompting import Kept
from qrmem.prompts import fenced, fenced_if
from qrmem.prompts.replies import FoldReply
from qrmem.types import Folded


async def fold(
    context: PromptContext,
    relations: tuple[str, str],
    texts: tuple[str, str],
    *,
    summary: str = "",
    question: str = "",
) -> Folded:
    """Ask for the questions Q_s to settle, then for the merged description, in one call.

    See `qrmem.types.Reasoner`.
    """

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
        called = await context.caller.call(
            "fold",
            FoldReply,
            inputs,
            [pieces(summary), *(pieces(text) for text in texts)],
            window=context.window,
            reply=context.reserve,
        )
    except ModelOutputError:
        return Folded()
    settled = tuple(" ".join(question.split()) for question in called.value.questions)
    return Folded(" ".join(called.value.description.split()), settled)
