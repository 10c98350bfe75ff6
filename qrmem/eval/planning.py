"""What a run will use, by a rehearsal: a few items with a stand-in for the chat model.

Every system sends the requests that it would send, so that a new one needs nothing here. Two
courses are rehearsed, the shortest that replies can lead a run along and the longest
(`qrmem.eval.stand_in`); the plan is the range between them. Requests that are repeated, as a reply
cannot be read or a server fails, are not in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from qrmem.agents.state import silent
from qrmem.eval.harness import RunOptions
from qrmem.eval.report.results import Result, Spent, read_results
from qrmem.eval.report.tables import number
from qrmem.eval.running import PreparedRun, run_made
from qrmem.eval.stand_in import StandIn
from qrmem.llm.forecast import COUNTER, SPREAD_IN
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.memory.dry_run import StubEmbedder
from qrmem.types import Listener
from qrmem.types.usage import Course

REHEARSED = 3
"""Items that are rehearsed."""
SPREAD = 0.3
"""By which share building may cost less or more than the rehearsed texts say, by their size."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What one system is expected to use for all items, memories included as if it ran alone.

    Attributes:
        least: on the shortest course.
        most: on the longest.
    """

    system: str
    least: Spent
    most: Spent


async def forecasts(made: PreparedRun, listener: Listener = silent) -> list[Forecast]:
    """Return what each system of a run would use; nothing is sent.

    Args:
        listener: hears how far the rehearsals are.
    """
    least = await _rehearsed(made, "shortest", listener)
    most = await _rehearsed(made, "longest", listener)
    return [Forecast(name, least[name], most[name]) for name in least]


async def _rehearsed(made: PreparedRun, course: Course, listener: Listener) -> dict[str, Spent]:
    rehearsed = replace(made, items=made.items[:REHEARSED])
    name, counter = made.settings.embedder, open_tokenizer(made.settings.tokenizer)
    is_remote = name.startswith("openai:")
    options = RunOptions(
        listener=listener,
        chat=StandIn(made.settings.model, course),
        embedder=StubEmbedder(name, None, counter) if is_remote else None,
        rehearsed=course,
    )
    with TemporaryDirectory() as folder:
        await run_made(rehearsed, Path(folder), options)
        results = read_results(Path(folder))
    for_each, once = (
        _read(made, each=each) / _read(rehearsed, each=each) for each in (True, False)
    )
    sign = 1 if course == "longest" else -1
    spread = 1 + sign * SPREAD if len(made.items) > REHEARSED else 1
    tokens = COUNTER * (SPREAD_IN.high if course == "longest" else SPREAD_IN.low)
    return {
        name: _all(
            result,
            len(made.items),
            spread * (for_each if _is_built_for_each(result) else once),
            tokens,
        )
        for name, result in results.systems.items()
    }


def _read(made: PreparedRun, *, each: bool) -> int:
    """Return the characters that building reads: of every item's context, or of each once."""
    of_items = [item.context for item in made.items]
    contexts = of_items if each else dict.fromkeys(of_items)
    texts = (document.text for id in contexts for document in made.dataset.contexts[id].documents)
    return sum(map(len, texts)) or 1


def _is_built_for_each(result: Result) -> bool:
    """Whether a memory is built for each question, and not for its context."""
    return (
        1 < len(result.rows) == len({row.prediction.memory for row in result.rows.values()} - {""})
    )


def _all(result: Result, items: float, buildings: float, tokens: float) -> Spent:
    """Return what a system used, scaled to all items and to everything that is built.

    Args:
        tokens: of the model for each that we count, as its tokenizer is another.
    """
    each, built = result.online, result.alone
    money = [
        tokens * times * spent.money
        for times, spent in ((items, each), (buildings, built))
        if spent.money is not None
    ]
    return Spent(
        calls=items * each.calls + buildings * built.calls,
        tokens=tokens * (items * each.tokens + buildings * built.tokens),
        money=sum(money) if money else None,
    )


def plan_lines(made: PreparedRun, found: Sequence[Forecast]) -> list[str]:
    """Return a plan for people."""
    head = (
        f"{made.spec.task}: {len(made.items)} items, {made.settings.model}, window "
        f"{made.settings.window}; rehearsed on {min(REHEARSED, len(made.items))}, nothing was sent;"
        " a reply that cannot be read is asked for again, up to five times, on top"
    )
    return [head, *(f"  {one.system:24} {_between(one.least, one.most)}" for one in found)]


def _between(least: Spent, most: Spent) -> str:
    told = (
        f"{least.calls:,.0f}-{most.calls:,.0f} calls, {least.tokens:,.0f}-{most.tokens:,.0f} tokens"
    )
    if least.money is None or most.money is None:
        return told
    return f"{told}, {number(least.money)}-{number(most.money)} in money"
