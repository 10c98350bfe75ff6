"""A chat model as judge: it rates the answers of a run from 1 to 10, by a prompt of our own.

An answer for which no rating can be read has none; that is not zero, and is said in the report.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from qrmem.config import Settings
from qrmem.errors import ModelOutputError, UsageError
from qrmem.eval.bench import Bench, Tally, open_bench, resolved
from qrmem.eval.ratings import LEAST, MOST, Rating, add_rating, ratings
from qrmem.eval.records import Item, Row
from qrmem.eval.rundir import RunFolder
from qrmem.eval.running import Means
from qrmem.language.prompted.caller import Caller
from qrmem.language.prompted.window import Ruler
from qrmem.prompts import catalogue, fenced

_REPLY = 256


async def judge(folder: Path, settings: Settings, means: Means) -> list[Rating]:
    """Rate every answer of a run that has no rating yet; return all that were made now.

    Raises:
        UsageError: there is no run in the folder, or another model has judged it.
        MissingError: there is no chat model.
        CapReached: a cap was reached; what was rated stays.
    """
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
        if not row.error and (key not in known or known[key].rating is None)
    ]
    return await _rated(waiting, items, folder, settings, means)


async def _rated(
    rows: Sequence[Row], items: Mapping[str, Item], folder: Path, settings: Settings, means: Means
) -> list[Rating]:
    made: list[Rating] = []
    async with open_bench(
        resolved(settings).with_(embedder="none"),
        folder,
        chat=means.chat,
        caps=means.caps,
        listener=means.listener,
        record=lambda entry: None,
    ) as bench:
        for row in rows:
            made.append(await _rating(bench, items[row.item], row))
            add_rating(folder, made[-1])
    return made


async def _rating(bench: Bench, item: Item, row: Row) -> Rating:
    run = bench.reader(Tally(bench.listener))
    assert run.meter is not None
    caller = Caller(run.meter, Ruler(bench.tools.counter))
    model = bench.settings.model
    words = row.found.text.split()
    try:
        called = await caller.call(
            catalogue.RATE,
            lambda kept: catalogue.RateInputs(
                question=f"Question: {item.question}",
                reference=_reference(item),
                given=fenced(" ".join(kept[0])) if kept[0] else "(none was given)",
            ),
            [words],
            window=bench.settings.window,
            reply=_REPLY,
        )
    except ModelOutputError as exc:
        return Rating(row.system, row.item, None, str(exc)[:200], model)
    said = called.value
    rating = said.rating if LEAST <= said.rating <= MOST else None
    reason = said.reasoning if rating else f"a rating of {said.rating}: {said.reasoning}"
    return Rating(row.system, row.item, rating, reason, model)


def _reference(item: Item) -> str:
    if not item.answers:
        return "There is no reference."
    return f"The reference:\n{fenced(' / '.join(item.answers))}"
