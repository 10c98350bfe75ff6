"""Extraction of facts from turns, and verdicts on pairs of statements, with a chat model."""

from collections.abc import Sequence
from dataclasses import replace

from qrmem.extraction.prompt_context import PromptContext
from qrmem.extraction.reply_items import split
from qrmem.llm.prompting import Kept
from qrmem.prompts import fenced, fenced_if
from qrmem.prompts.replies import FactsReply, VerdictsReply
from qrmem.text.calendar_names import DAYS
from qrmem.text.dates import day_of
from qrmem.types import Turn
from qrmem.types.turns import MOST_FACTS, ROLE_KEY, USER_KEY, speaker_of

_LONGEST = 300
"""Maximum length of a fact in characters; longer ones are dropped."""
_PIECE = 200
"""Length in characters of the pieces from whose end a turn is cut to fit."""


async def facts(
    context: PromptContext, earlier: Sequence[Turn], turns: Sequence[Turn], segments: Sequence[str]
) -> tuple[list[list[str]], int]:
    """Return the facts of each turn, in order, by one call, and how many characters it showed.

    Args:
        earlier: earlier turns, as context; the oldest are left out if they do not fit.
        turns: the turns; a single one is cut to what fits.
        segments: ids of the segments of the turns; the cached reply is deleted with any of them.

    Raises:
        ModelOutputError: no reply could be parsed.
        WindowTooSmall: the turns do not fit the window together.
        ContextExceeded: they do not fit the server's smaller context.
    """
    newest = [_turn_in_words(turn) for turn in reversed(earlier)]
    start, *pieces = _pieces(context, turns[0]) if len(turns) == 1 else [""]

    def shown(kept: Kept) -> Sequence[Turn]:
        return [replace(turns[0], text="".join((start, *kept[1])))] if start else turns

    def inputs(kept: Kept) -> dict[str, object]:
        lines = (fenced(_turn_in_words(turn), str(n)) for n, turn in enumerate(shown(kept), 1))
        return dict(earlier=fenced_if("\n".join(reversed(kept[0]))), turns="\n".join(lines))

    call = await context.caller.call(
        "facts",
        FactsReply,
        inputs,
        [newest, pieces],
        window=context.window,
        reply=context.reserve,
        segments=segments,
    )
    numbers = [str(n) for n in range(1, len(turns) + 1)]
    facts_by_turn: list[list[str]] = [[] for _ in turns]
    for item in split(call.value.facts, numbers):
        fact = ", ".join(part for part in item.parts if part)
        turn_facts = facts_by_turn[int(item.question) - 1]
        if (
            fact
            and len(fact) <= _LONGEST
            and fact not in turn_facts
            and len(turn_facts) < MOST_FACTS
        ):
            turn_facts.append(fact)
    return facts_by_turn, sum(len(turn.text) for turn in shown(call.kept))


def _pieces(context: PromptContext, turn: Turn) -> list[str]:
    """Return the pieces of the beginning of a turn, as far as a window may hold it."""
    text = context.caller.budget.cut(turn.text, context.window)
    return [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]


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
    pair_lines = "\n".join(fenced(pair, str(n)) for n, pair in enumerate(pairs, 1))
    call = await context.caller.call(
        "judge-facts",
        VerdictsReply,
        lambda kept: dict(pairs=pair_lines),
        window=context.window,
        reply=context.reserve,
        segments=segments,
    )
    numbers = {str(n): n - 1 for n in range(1, len(pairs) + 1)}
    verdicts_by_pair: dict[int, set[str]] = {}
    for item in call.value.verdicts:
        number, _, word = item.partition("|")
        number, word = number.strip(" .\"'Q"), word.strip(" .\"'").casefold()
        if number in numbers and word in VERDICTS:
            verdicts_by_pair.setdefault(numbers[number], set()).add(word)
    return {n: words.pop() for n, words in verdicts_by_pair.items() if len(words) == 1}


def _turn_in_words(turn: Turn) -> str:
    """Return a turn with its name and role, weekday and time."""
    name = turn.speaker or speaker_of({ROLE_KEY: turn.role, USER_KEY: turn.user})
    day = day_of(turn.at)
    weekday = f"{DAYS[day.weekday()].title()} " if day else ""
    when = f", {weekday}{turn.at}" if turn.at else ""
    return f"{name} ({turn.role}){when}: {turn.text}" if name else f"{turn.role}{when}: {turn.text}"
