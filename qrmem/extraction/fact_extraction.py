"""Extraction of facts from turns, and verdicts on pairs of statements, with a chat model."""

from collections.abc import Sequence

from qrmem.extraction.prompt_context import PromptContext
from qrmem.extraction.reply_items import split
from qrmem.llm.prompting import Kept
from qrmem.prompts import fenced, fenced_if
from qrmem.prompts.replies import FactsReply, VerdictsReply
from qrmem.types import Turn
from qrmem.types.turns import MOST_FACTS

_LONGEST = 300
"""Maximum length of a fact in characters; longer ones are dropped."""


async def facts(
    context: PromptContext, earlier: Sequence[Turn], turns: Sequence[Turn], segments: Sequence[str]
) -> list[list[str]]:
    """Return the facts of each turn, in order, by one call.

    Args:
        earlier: earlier turns, as context; the oldest are left out if they do not fit.
        turns: the turns.
        segments: ids of the segments of the turns; the cached reply is deleted with any of them.

    Raises:
        ModelOutputError: no reply could be parsed.
    """
    newest = [_said(turn) for turn in reversed(earlier)]
    shown = "\n".join(fenced(_said(turn), str(n)) for n, turn in enumerate(turns, 1))

    def inputs(kept: Kept) -> dict[str, object]:
        return dict(earlier=fenced_if("\n".join(reversed(kept[0]))), turns=shown)

    called = await context.caller.call(
        "facts",
        FactsReply,
        inputs,
        [newest],
        window=context.window,
        reply=context.reserve,
        segments=segments,
    )
    numbers = [str(n) for n in range(1, len(turns) + 1)]
    found: list[list[str]] = [[] for _ in turns]
    for item in split(called.value.facts, numbers):
        fact = ", ".join(part for part in item.parts if part)
        own = found[int(item.question) - 1]
        if fact and len(fact) <= _LONGEST and fact not in own and len(own) < MOST_FACTS:
            own.append(fact)
    return found


VERDICTS = ("replaces", "agrees", "beside")
"""Possible relations of a later statement to an earlier one."""


async def verdicts(
    context: PromptContext, pairs: Sequence[str], segments: Sequence[str]
) -> dict[int, str]:
    """Return a chat model's verdict on each pair of statements, by its index, by one call.

    A pair with a missing, contradictory or unknown verdict is left out.

    Args:
        pairs: the texts of an earlier and a later statement each.
        segments: ids of the statements' segments; the cached reply is deleted with any of them.

    Raises:
        ModelOutputError: no reply could be parsed.
        WindowTooSmall: the pairs do not fit the window.
    """
    shown = "\n".join(fenced(pair, str(n)) for n, pair in enumerate(pairs, 1))
    called = await context.caller.call(
        "judge-facts",
        VerdictsReply,
        lambda kept: dict(pairs=shown),
        window=context.window,
        reply=context.reserve,
        segments=segments,
    )
    found: dict[int, set[str]] = {}
    for item in called.value.verdicts:
        number, _, word = item.partition("|")
        number, word = number.strip(" .\"'Q"), word.strip(" .\"'").casefold()
        if number.isdecimal() and 1 <= int(number) <= len(pairs) and word in VERDICTS:
            found.setdefault(int(number) - 1, set()).add(word)
    return {n: words.pop() for n, words in found.items() if len(words) == 1}


def _said(turn: Turn) -> str:
    return f"{turn.speaker or turn.user or turn.role}, {turn.at}: {turn.text}"
