"""What is worth remembering of turns, as sentences that a chat model writes."""

from collections.abc import Sequence

from qrmem.extraction.prompt_context import PromptContext
from qrmem.extraction.reply_items import split
from qrmem.llm.prompting import Kept
from qrmem.prompts import fenced, fenced_if
from qrmem.prompts.replies import FactsReply, VerdictsReply
from qrmem.types import Turn
from qrmem.types.turns import MOST_FACTS

_LONGEST = 300
"""Characters; what is longer is no short sentence."""


async def facts(
    context: PromptContext, earlier: Sequence[Turn], turns: Sequence[Turn], segments: Sequence[str]
) -> list[list[str]]:
    """Return the facts of each turn, in order; one call for all of them.

    Args:
        earlier: what was said before; the oldest is left out first where not all fits.
        segments: ids of the segments that the reply goes with.

    Raises:
        ModelOutputError: no reply could be read.
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
"""What a later statement does to an earlier one."""


async def verdicts(
    context: PromptContext, pairs: Sequence[str], segments: Sequence[str]
) -> dict[int, str]:
    """Return what a chat model says of pairs of statements, by their place; one call for all.

    What it does not say, says twice in two ways, or says in other words, is left out.

    Args:
        pairs: an earlier and a later statement each, in words.
        segments: ids of the segments that the reply goes with.

    Raises:
        ModelOutputError: no reply could be read.
        WindowTooSmall: they do not fit the window.
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
