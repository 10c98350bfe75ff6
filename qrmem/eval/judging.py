"""A chat model as judge of a run's answers; its ratings are stored in the run's folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from qrmem.config import Settings
from qrmem.errors import ModelOutputError, UsageError
from qrmem.eval.harness import Harness, RunOptions, open_harness, resolved
from qrmem.eval.items import Item, Row
from qrmem.eval.run_folder import RATINGS, RunFolder, runs_in
from qrmem.eval.running import at_once
from qrmem.graphstore.codec import dumps, loads
from qrmem.prompts import fenced
from qrmem.prompts.replies import RatingReply, RubricReply
from qrmem.types import Event

LEAST, MOST, MOST_CHAT = 1, 10, 100
"""Lowest and highest rating of an answer; of a reply in a conversation, 100, as in the paper."""
MOST_CRITERION = 2
"""Highest number of points for one criterion of a rubric; the lowest is 0."""


@dataclass(frozen=True, slots=True)
class Rating:
    """A judge's rating of one answer.

    Attributes:
        rating: in [1, `most`], or the points for all criteria of a rubric, in [0, `most`]; `None`
            if it could not be parsed or was out of range.
        judge: name of the judge's model.
    """

    system: str
    item: str
    rating: int | None
    reason: str
    judge: str
    most: int = MOST

    @property
    def share(self) -> float | None:
        """The rating divided by the highest rating."""
        return None if self.rating is None else self.rating / self.most


def ratings(folder: Path) -> dict[tuple[str, str], Rating]:
    """Return the last rating of each (system, item) of a run.

    Raises:
        UsageError: a line of the file cannot be parsed.
    """
    records = RunFolder(folder).records(RATINGS, partial(loads, kind=Rating))
    return {(one.system, one.item): one for one in records}


_REPLY = 256


async def judge(folder: Path, settings: Settings, options: RunOptions) -> list[Rating]:
    """Rate every unrated answer of a run, or of a preset's runs; return the new ratings.

    Raises:
        UsageError: the folder has no run, the run has no answers, or another model judged it.
        StoreUnavailable: a run, or another judge, is active in the folder.
        MissingError: there is no chat model.
        CapReached: a cap was reached; ratings so far are kept.
    """
    ratings_made: list[Rating] = []
    options = options.together(settings)
    for run in runs_in(folder):
        ratings_made += await _judged(run, settings, options)
    return ratings_made


async def _judged(folder: Path, settings: Settings, options: RunOptions) -> list[Rating]:
    run = RunFolder(folder)
    if run.config()["answers"] == "none":
        raise UsageError(f"{folder} has no answers to rate: it was run with --retrieve")
    # With the run's own set of prompts, if the user chooses none.
    prompts_named = settings.prompts or run.config()["prompts"].get("named", "")
    settings = resolved(settings.with_(prompts=prompts_named)).with_(embedder="none")
    ratings_made: list[Rating] = []
    with run.hold():
        items, rows = run.answered()
        waiting = _waiting(run.path, rows, settings.model)
        async with open_harness(settings, folder, options, record=lambda entry: None) as harness:
            harness.listener(Event("items", {"total": len(waiting)}))

            async def work(row: Row) -> None:
                one = await _rating(harness, items[row.item], row)
                ratings_made.append(one)
                run.append(RATINGS, dumps(one))
                error = one.reason if one.rating is None else ""
                harness.listener(Event("item", {"item": row.item, "error": error}))
                harness.tell_paid()

            await at_once(waiting, work, options.concurrency)
            return ratings_made


def _waiting(folder: Path, rows: Mapping[tuple[str, str], Row], model: str) -> list[Row]:
    """Return the results that have no rating yet."""
    ratings_known = ratings(folder)
    other = next((r.judge for r in ratings_known.values() if r.judge != model), "")
    if other:
        raise UsageError(f"{folder} was judged by {other}; one judge rates a run")
    return [
        row
        for key, row in rows.items()
        if not row.error and not row.prediction.is_ranking
        if key not in ratings_known or ratings_known[key].rating is None
    ]


async def _rating(harness: Harness, item: Item, row: Row) -> Rating:
    is_chat, by_rubric = bool(row.prediction.rounds), bool(item.rubric)
    most = MOST_CHAT if is_chat else MOST_CRITERION * len(item.rubric) if by_rubric else MOST
    rated = partial(Rating, row.system, row.item, judge=harness.settings.model, most=most)
    try:
        if by_rubric and not is_chat:
            by_criterion = await _rubric_rated(harness, item, row)
            reason = f"{by_criterion.points}: {by_criterion.reasoning}"
            return rated(rating=_total(by_criterion.points, item.rubric), reason=reason)
        reply = await (_chat_rated if is_chat else _answer_rated)(harness, item, row)
    except ModelOutputError as exc:
        return rated(rating=None, reason=str(exc)[:200])
    if LEAST <= reply.rating <= most:
        return rated(rating=reply.rating, reason=reply.reasoning)
    return rated(rating=None, reason=f"a rating of {reply.rating}: {reply.reasoning}")


def _total(points: Sequence[int], rubric: Sequence[str]) -> int | None:
    """Add the points, if each criterion has points that it can have."""
    is_valid = all(0 <= one <= MOST_CRITERION for one in points) and len(points) == len(rubric)
    return sum(points) if is_valid else None


async def _rubric_rated(harness: Harness, item: Item, row: Row) -> RubricReply:
    rubric = "\n".join(f"{n}. {fenced(one)}" for n, one in enumerate(item.rubric, 1))
    call = await harness.caller.call(
        "rate-rubric",
        RubricReply,
        lambda kept: dict(
            question=f"Question: {item.question}", rubric=rubric, given=_if_given(kept[0])
        ),
        [row.prediction.text.split(" ")],
        window=harness.settings.window,
        reply=_REPLY,
    )
    return call.value


async def _answer_rated(harness: Harness, item: Item, row: Row) -> RatingReply:
    call = await harness.caller.call(
        "rate",
        RatingReply,
        lambda kept: dict(
            question=f"Question: {item.question}",
            reference=_reference(item),
            given=_if_given(kept[0]),
        ),
        [row.prediction.text.split(" ")],
        window=harness.settings.window,
        reply=_REPLY,
    )
    return call.value


async def _chat_rated(harness: Harness, item: Item, row: Row) -> RatingReply:
    """Rate a reply in view of the rounds that the question refers to, with the system's replies."""
    history = [
        fenced(round_made.text)
        for round_made in row.prediction.rounds
        if round_made.id in item.gold
    ]
    call = await harness.caller.call(
        "rate-chat",
        RatingReply,
        lambda kept: dict(
            # If the history is too long for the window, the latest rounds are kept.
            history="\n".join(reversed(kept[0])) or "(none)",
            question=fenced(item.question),
            given=_if_given(kept[1]),
        ),
        [history[::-1], row.prediction.text.split(" ")],
        window=harness.settings.window,
        reply=_REPLY,
    )
    return call.value


def _if_given(words: Sequence[str]) -> str:
    text = " ".join(words)
    return fenced(text) if text else "(none was given)"


def _reference(item: Item) -> str:
    if not item.answers:
        return "There is no reference."
    return f"The reference:\n{fenced(' / '.join(item.answers))}"
