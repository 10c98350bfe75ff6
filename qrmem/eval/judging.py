"""A chat model as judge: it rates the answers of a run from 1 to 10, by a prompt of our own.

A reply in a conversation is rated from 1 to 100, by the rounds that its question goes back to.

An answer for which no rating can be read has none; that is not zero, and is said in the report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from qrmem.config import Settings
from qrmem.errors import ModelOutputError, UsageError
from qrmem.eval.bench import Bench, Tally, open_bench, resolved
from qrmem.eval.ratings import LEAST, MOST, MOST_CHAT, Rating, add_rating, ratings
from qrmem.eval.records import Item, Row
from qrmem.eval.rundir import RunFolder, runs_in
from qrmem.eval.runner import together
from qrmem.eval.running import Means
from qrmem.eval.running_presets import rest_of
from qrmem.llm.caps import Amount
from qrmem.llm.prompting import Caller
from qrmem.llm.token_budget import TokenBudget
from qrmem.prompts import catalogue, fenced
from qrmem.types import Event

if TYPE_CHECKING:
    from qrmem.prompts.replies import RatingReply

_REPLY = 256


async def judge(folder: Path, settings: Settings, means: Means) -> list[Rating]:
    """Rate every answer of a run, or of a preset's, that has none yet; return what was made now.

    Raises:
        UsageError: there is no run in the folder, or another model has judged it.
        MissingError: there is no chat model.
        CapReached: a cap was reached; what was rated stays.
    """
    made: list[Rating] = []
    for run in runs_in(folder):
        rated, used = await _judged(run, settings, means)
        made += rated
        means = replace(means, caps=rest_of(means.caps, used))
    return made


async def _judged(folder: Path, settings: Settings, means: Means) -> tuple[list[Rating], Amount]:
    run = RunFolder(folder)
    run.config()
    items = {item.id: item for item in run.items()}
    known = ratings(folder)
    other = next((r.judge for r in known.values() if r.judge != settings.model), "")
    if other:
        raise UsageError(f"{folder} was judged by {other}; one judge rates a run")
    waiting = [
        row
        for key, row in run.rows().items()
        if not row.error and not row.found.is_ranking
        if key not in known or known[key].rating is None
    ]
    return await _rated(waiting, items, folder, settings, means)


async def _rated(
    rows: Sequence[Row], items: Mapping[str, Item], folder: Path, settings: Settings, means: Means
) -> tuple[list[Rating], Amount]:
    made: list[Rating] = []
    async with open_bench(
        resolved(settings).with_(embedder="none"),
        folder,
        chat=means.chat,
        caps=means.caps,
        listener=means.listener,
        record=lambda entry: None,
    ) as bench:
        bench.listener(Event("items", {"total": len(rows)}))
        queue = iter(rows)

        async def work() -> None:
            for row in queue:
                one = await _rating(bench, items[row.item], row)
                made.append(one)
                add_rating(folder, one)
                error = "" if one.rating else one.reason
                bench.listener(Event("item", {"item": row.item, "error": error}))
                bench.tell_paid()

        await together(work, max(1, min(means.concurrency, len(rows))))
        return made, bench.model.used if bench.model else Amount()


async def _rating(bench: Bench, item: Item, row: Row) -> Rating:
    run = bench.reader(Tally(bench.listener))
    assert run.meter is not None
    caller = Caller(run.meter, TokenBudget(bench.tools.counter))
    model = bench.settings.model
    most = MOST_CHAT if row.found.rounds else MOST
    try:
        said = await (_chat_rated if row.found.rounds else _answer_rated)(caller, bench, item, row)
    except ModelOutputError as exc:
        return Rating(row.system, row.item, None, str(exc)[:200], model, most)
    rating = said.rating if LEAST <= said.rating <= most else None
    reason = said.reasoning if rating else f"a rating of {said.rating}: {said.reasoning}"
    return Rating(row.system, row.item, rating, reason, model, most)


async def _answer_rated(caller: Caller, bench: Bench, item: Item, row: Row) -> "RatingReply":
    called = await caller.call(
        catalogue.RATE,
        lambda kept: catalogue.RateInputs(
            question=f"Question: {item.question}",
            reference=_reference(item),
            given=_given(kept[0]),
        ),
        [row.found.text.split(" ")],
        window=bench.settings.window,
        reply=_REPLY,
    )
    return called.value


async def _chat_rated(caller: Caller, bench: Bench, item: Item, row: Row) -> "RatingReply":
    """Rate a reply by the rounds that the question goes back to, as this system replied in them."""
    history = [fenced(made.text) for made in row.found.rounds if made.id in item.gold]
    called = await caller.call(
        catalogue.RATE_CHAT,
        lambda kept: catalogue.RateChatInputs(
            # Of a history that is too long for the window the latest rounds are kept.
            history="\n".join(reversed(kept[0])) or "(none)",
            question=fenced(item.question),
            given=_given(kept[1]),
        ),
        [history[::-1], row.found.text.split(" ")],
        window=bench.settings.window,
        reply=_REPLY,
    )
    return called.value


def _given(words: Sequence[str]) -> str:
    text = " ".join(words)
    return fenced(text) if text else "(none was given)"


def _reference(item: Item) -> str:
    if not item.answers:
        return "There is no reference."
    return f"The reference:\n{fenced(' / '.join(item.answers))}"
