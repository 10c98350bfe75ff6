"""The one short-answer step that every system goes through; raw answers are kept and scored too.

Exact match and F1 measure an answer's form first: a right answer in a sentence scores near zero.
With a chat model one prompt shortens every answer; without one it stays as it is.
"""

from dataclasses import replace

from qrmem.errors import ModelOutputError
from qrmem.eval.bench import Bench, Tally
from qrmem.eval.records import WHOLE, Found, Item
from qrmem.llm.prompting import Caller
from qrmem.llm.token_budget import TokenBudget
from qrmem.prompts import catalogue, fenced
from qrmem.types import Usage

SHORT_ENOUGH = 5
"""Words up to which an answer is short already."""
REPLY = 128


async def shortened(bench: Bench, item: Item, found: Found) -> tuple[Found, str]:
    """Return the short form of an answer, and what was found with the step's own cost in it."""
    if "repository" in item.labels or found.rounds:
        return found, found.text  # code is compared as it is, and a judge reads a reply whole
    text = " ".join(found.text.split())
    if item.labels.get("answers") == WHOLE:
        return found, text
    if item.choices or not text or len(text.split()) <= SHORT_ENOUGH:
        return found, text
    if bench.model is None:
        return found, text
    tally = Tally(bench.listener)
    short = await _by_model(bench, item, text, tally)
    online = {**found.usage.online, **tally.stages}
    return replace(found, usage=Usage(found.usage.construction, online)), short


async def _by_model(bench: Bench, item: Item, text: str, tally: Tally) -> str:
    run = bench.reader(tally)
    assert run.meter is not None
    caller = Caller(run.meter, TokenBudget(bench.tools.counter))
    words = text.split()
    try:
        called = await caller.call(
            catalogue.SHORT_ANSWER,
            lambda kept: catalogue.ShortAnswerInputs(
                question=f"Question: {item.question}", given=fenced(" ".join(kept[0]))
            ),
            [words],
            window=bench.settings.window,
            reply=REPLY,
        )
    except ModelOutputError:
        return text
    return " ".join(called.value.answer.split())
