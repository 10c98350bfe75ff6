"""From the calls of a dry run to ranges: how far real replies may differ, money and time."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from qrmem.config import Settings
from qrmem.llm.budget import Price, Prices
from qrmem.types import CallRecord
from qrmem.types.usage import Range, StagePlan, total

COUNTER = 0.93
"""Tokens for each that we count: on English prose cl100k counts 0.91 to 0.97 of ours."""
SPREAD_IN = Range(0.85, 1.0, 1.25)
"""How prompts may differ: another tokenizer, what a server adds, longer notes in them."""
SPREAD_OUT = Range(0.4, 1.0, 2.5)
"""How replies may differ: some models are terse, others are not."""
ASKED_AGAIN = 1.15
"""Calls with the replies that cannot be read, and are asked for again."""
SPREAD_CALLS: Mapping[str, Range] = {
    "extract": Range(0.9, 1.0, 1.3),
    "fold": Range(0.1, 1.0, 10.0),
    "supplement": Range(0.6, 1.0, 1.6),
    "tree": Range(1.0, 1.0, 2.0),
}
"""How often parallel relations occur, questions are accepted, and a passage of a shared call is
read once more, depends on the model; where every summary of a tree lacks its labels, each is asked
for twice."""
UNSURE = frozenset({"fold", "supplement"})
FIRST_TOKEN = Range(0.2, 0.8, 3.0)
"""Seconds until a reply begins, where nothing was measured."""
PER_TOKEN = Range(1 / 150, 1 / 60, 1 / 15)
"""Seconds for a token of it."""
ENOUGH = 3
"""Calls of a stage from which its time is taken."""


@dataclass(slots=True)
class Used:
    """What a stage used in a dry run; `most_out`: tokens that its replies may have at most."""

    calls: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    most_out: float = 0.0

    def add(self, tokens_in: int, tokens_out: int, weight: float, most_out: int) -> None:
        """Count a call so many times."""
        self.calls += weight
        self.tokens_in += weight * tokens_in * COUNTER
        self.tokens_out += weight * tokens_out * COUNTER
        self.most_out += weight * most_out


Dry = dict[tuple[str, str], Used]
"""By stage and model."""


def stage_plans(low: Dry, likely: Dry, high: Dry, prices: Prices) -> list[StagePlan]:
    """Return the plans of all stages out of three courses that a run may take."""
    plans = []
    for stage, model in dict.fromkeys((*likely, *high)):
        least, mean, most = (c.get((stage, model), Used()) for c in (low, likely, high))
        spread = SPREAD_CALLS.get(stage, Range(1.0, 1.0, ASKED_AGAIN))
        if stage in UNSURE:  # of few calls none may be made
            few = 1 - 1 / max(1.0, least.calls)
            spread = Range(spread.low * few, spread.likely, spread.high)
        calls = Range(least.calls * spread.low, mean.calls, most.calls * spread.high)
        tokens_in = Range(
            least.tokens_in * spread.low * SPREAD_IN.low,
            mean.tokens_in,
            most.tokens_in * spread.high * SPREAD_IN.high,
        )
        tokens_out = Range(
            least.tokens_out * spread.low * SPREAD_OUT.low,
            mean.tokens_out,
            spread.high * min(most.tokens_out * SPREAD_OUT.high, most.most_out),
        )
        cost = cost_of(tokens_in, tokens_out, prices.of(model))
        plans.append(
            StagePlan(stage, model, rounded(calls), rounded(tokens_in), rounded(tokens_out), cost)
        )
    return plans


def cost_of(tokens_in: Range, tokens_out: Range, price: Price | None) -> Range | None:
    """Return the money for some tokens, `None` where their price is not known."""
    if price is None:
        return None
    pairs = zip(_three(tokens_in), _three(tokens_out), strict=True)
    return Range(*(price.of(round(i), round(o)) for i, o in pairs))


def _three(figure: Range) -> tuple[float, float, float]:
    return figure.low, figure.likely, figure.high


def rounded(figure: Range) -> Range:
    """Return whole numbers that a range holds."""
    return Range(math.floor(figure.low), round(figure.likely), math.ceil(figure.high))


def wall_time(
    plans: Sequence[StagePlan], settings: Settings, past: Iterable[CallRecord], in_flight: int
) -> tuple[Range, str]:
    """Return the wall time of a run, and on what it rests.

    Args:
        past: calls of earlier runs; where there are enough of a stage, their time is taken.
        in_flight: calls at the same time.
    """
    measured = _measured(past)
    spans = [_latency(plan, measured) for plan in plans]
    waited = [
        sum(
            math.ceil(_three(plan.calls)[n] / in_flight) * _three(span)[n]
            for plan, span in zip(plans, spans, strict=True)
        )
        for n in range(3)
    ]
    bounds = zip(waited, _three(_allowed(plans, settings)), strict=True)
    known = sum((plan.stage, plan.model) in measured for plan in plans)
    basis = "assumed: 60 tokens a second, 0.8 s before the first"
    if plans and known == len(plans):
        basis = "as earlier runs of this memory took"
    elif known:
        basis = f"{known} of {len(plans)} stages as earlier runs took, the others assumed"
    return Range(*(round(max(pair), 1) for pair in bounds)), basis


def _measured(past: Iterable[CallRecord]) -> dict[tuple[str, str], float]:
    """Return the median time of the calls of a stage and model that were made often enough."""
    times: dict[tuple[str, str], list[float]] = {}
    for record in past:
        if record.outcome in ("ok", "repaired"):
            times.setdefault((record.stage, record.model), []).append(record.seconds)
    return {key: median(found) for key, found in times.items() if len(found) >= ENOUGH}


def _latency(plan: StagePlan, measured: Mapping[tuple[str, str], float]) -> Range:
    if (seconds := measured.get((plan.stage, plan.model))) is not None:
        return Range(0.5 * seconds, seconds, 2.0 * seconds)
    length = plan.tokens_out.likely / max(1.0, plan.calls.likely)
    return FIRST_TOKEN + Range(*(length * each for each in _three(PER_TOKEN)))


def _allowed(plans: Sequence[StagePlan], settings: Settings) -> Range:
    """Return the time that the allowances of a minute ask for."""
    requests, tokens = settings.requests_per_minute, settings.tokens_per_minute
    calls = total(plan.calls for plan in plans)
    amount = total(plan.tokens_in + plan.tokens_out for plan in plans)
    by_calls = [60 * n / requests if requests else 0.0 for n in _three(calls)]
    by_tokens = [60 * n / tokens if tokens else 0.0 for n in _three(amount)]
    return Range(*(max(pair) for pair in zip(by_calls, by_tokens, strict=True)))
