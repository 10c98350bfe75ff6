"""Dry runs: a stand-in chat model, and ranges of tokens, money and time from its calls."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import median
from typing import Any

from qrmem.config import Settings
from qrmem.llm.budget import Price, Prices
from qrmem.llm.replies import strict_schema
from qrmem.types import CallRecord, ChatReply, ChatRequest
from qrmem.types.usage import Course, Range, StagePlan, total

COUNTER = 0.93
"""Tokens per token of our counter: on English prose cl100k counts 0.91 to 0.97."""
SPREAD_IN = Range(0.85, 1.0, 1.25)
"""Range of prompt lengths: other tokenizers, additions by servers, longer notes."""
SPREAD_OUT = Range(0.4, 1.0, 2.5)
"""Range of reply lengths: some models are terse, others are not."""
ASKED_AGAIN = 1.15
"""Factor on the number of calls, for retries after replies that cannot be parsed."""
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
"""Seconds until a reply begins, without earlier calls to measure."""
PER_TOKEN = Range(1 / 150, 1 / 60, 1 / 15)
"""Seconds per token of a reply."""
ENOUGH = 3
"""Least number of earlier calls of a stage to estimate its time from."""


@dataclass(slots=True)
class StageUse:
    """Usage of a stage in a dry run; `most_out`: maximum tokens of its replies."""

    calls: float = 0.0
    tokens_in: float = 0.0
    tokens_out: float = 0.0
    most_out: float = 0.0

    def add(self, tokens_in: int, tokens_out: int, weight: float, most_out: int) -> None:
        """Add a call `weight` times."""
        self.calls += weight
        self.tokens_in += weight * tokens_in * COUNTER
        self.tokens_out += weight * tokens_out * COUNTER
        self.most_out += weight * most_out


Dry = dict[tuple[str, str], StageUse]
"""Usage by stage and model."""


def stage_plans(low: Dry, likely: Dry, high: Dry, prices: Prices) -> list[StagePlan]:
    """Return the plans of all stages from three dry runs: low, likely and high."""
    plans = []
    for stage, model in dict.fromkeys((*likely, *high)):
        least, mean, most = (c.get((stage, model), StageUse()) for c in (low, likely, high))
        spread = SPREAD_CALLS.get(stage, Range(1.0, 1.0, ASKED_AGAIN))
        if stage in UNSURE:  # if few calls are likely, the lowest count is 0
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
    """Return the cost of tokens, `None` if the price is unknown."""
    if price is None:
        return None
    pairs = zip(_three(tokens_in), _three(tokens_out), strict=True)
    return Range(*(price.of(round(i), round(o)) for i, o in pairs))


def _three(figure: Range) -> tuple[float, float, float]:
    return figure.low, figure.likely, figure.high


def rounded(figure: Range) -> Range:
    """Round a range outwards to whole numbers."""
    return Range(math.floor(figure.low), round(figure.likely), math.ceil(figure.high))


def wall_time(
    plans: Sequence[StagePlan], settings: Settings, past: Iterable[CallRecord], in_flight: int
) -> tuple[Range, str]:
    """Return the range of a run's wall time in seconds, and the basis of the estimate as text.

    Args:
        plans: plans of the stages.
        settings: the settings.
        past: calls of earlier runs; a stage with enough of them uses their times.
        in_flight: maximum number of parallel calls.
    """
    median_times = _median_times(past)
    spans = [_latency(plan, median_times) for plan in plans]
    waited = [
        sum(
            math.ceil(_three(plan.calls)[n] / in_flight) * _three(span)[n]
            for plan, span in zip(plans, spans, strict=True)
        )
        for n in range(3)
    ]
    bounds = zip(waited, _three(_allowed(plans, settings)), strict=True)
    calls_timed = sum((plan.stage, plan.model) in median_times for plan in plans)
    basis = "assumed: 60 tokens a second, 0.8 s before the first"
    if plans and calls_timed == len(plans):
        basis = "as earlier runs of this memory took"
    elif calls_timed:
        basis = f"{calls_timed} of {len(plans)} stages as earlier runs took, the others assumed"
    return Range(*(round(max(pair), 1) for pair in bounds)), basis


def _median_times(past: Iterable[CallRecord]) -> dict[tuple[str, str], float]:
    """Return the median time of the calls of a stage and model that were made often enough."""
    times: dict[tuple[str, str], list[float]] = {}
    for record in past:
        if record.outcome in ("ok", "repaired"):
            times.setdefault((record.stage, record.model), []).append(record.seconds)
    return {
        key: median(call_times) for key, call_times in times.items() if len(call_times) >= ENOUGH
    }


def _latency(plan: StagePlan, measured: Mapping[tuple[str, str], float]) -> Range:
    if (seconds := measured.get((plan.stage, plan.model))) is not None:
        return Range(0.5 * seconds, seconds, 2.0 * seconds)
    length = plan.tokens_out.likely / max(1.0, plan.calls.likely)
    return FIRST_TOKEN + Range(*(length * each for each in _three(PER_TOKEN)))


def _allowed(plans: Sequence[StagePlan], settings: Settings) -> Range:
    """Return the time that the rate limits require."""
    requests, tokens = settings.requests_per_minute, settings.tokens_per_minute
    calls = total(plan.calls for plan in plans)
    amount = total(plan.tokens_in + plan.tokens_out for plan in plans)
    by_calls = [60 * n / requests if requests else 0.0 for n in _three(calls)]
    by_tokens = [60 * n / tokens if tokens else 0.0 for n in _three(amount)]
    return Range(*(max(pair) for pair in zip(by_calls, by_tokens, strict=True)))


# A chat model that replies at once, with the mean length of real replies. Its replies consist of
# words of the prompt, so that the code continues as with a real model.


# --- mean sizes of replies, as measured with models that read and answer in English ---------------
WORDS_PER_ENTITY = 30
"""Words of a passage per entity in it."""
DESCRIPTION_WORDS = 12
SUMMARY_WORDS = 100
REASON_WORDS = 15
QUESTIONS = 5
"""Number of questions if a prompt names none."""
NEW_OF_QUESTIONS = 0.5
"""Number of entities and relations that a question adds."""
NAMES_CHOSEN = 3
WORDS_PER_TOKEN = 0.6
"""Words per token in a reply of maximum length; names and marks need more tokens than words."""
# --------------------------------------------------------------------------------------------------

_MARK = re.compile(r"^</?text[^>]*>$\n?", re.MULTILINE)
_TEXT = re.compile(r"<(text[0-9]*)([^>]*)>\n(.*?)\n</\1>", re.DOTALL)
_NAME = re.compile(r"\b[A-Z][\w’']+(?: [A-Z][\w’']+)*")
_COUNT = re.compile(r"Questions wanted: (\d+)")
_SHORTEST = 5


class StubChat:
    """A stand-in for a chat model in a dry run.

    Attributes:
        name: name of the model.
        longest: stage to the largest limit of its replies, in tokens.
    """

    def __init__(self, name: str, longest: dict[str, int], course: Course | None = None) -> None:
        """Create a stub.

        Args:
            longest: shared by the stubs of a run.
            course: whether summaries of a tree have one word, or the maximum length.
        """
        self.name = name
        self.longest = longest
        self._course = course

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return a reply of about the expected size."""
        longest = self.longest.get(request.stage, 0)
        self.longest[request.stage] = max(longest, request.max_tokens)
        user = request.messages[-1].content
        texts = [(m.group(2).strip(), m.group(3)) for m in _TEXT.finditer(user)]
        properties = wanted_by(request).get("properties", {})
        if not properties:
            plain = _MARK.sub("", user)  # a reply with tags in it would count as an echo
            lengths = {"shortest": 1, "longest": int(request.max_tokens * WORDS_PER_TOKEN)}
            summary = _some(plain, lengths.get(self._course or "", SUMMARY_WORDS))
            is_labelled = any("(Surprise):" in message.content for message in request.messages)
            surprise = _some(plain, REASON_WORDS)
            labelled = f"(Summary): {summary}\n(Surprise): {surprise}"
            return ChatReply(labelled if is_labelled else summary)
        fields = self._fields(texts, user, request.stage)
        reply_fields = {name: fields.get(name, _nothing)(node) for name, node in properties.items()}
        return ChatReply(json.dumps(reply_fields, ensure_ascii=False))

    def _fields(
        self, texts: Sequence[tuple[str, str]], user: str, stage: str
    ) -> Mapping[str, Callable[[Any], Any]]:
        passage = max((text for _, text in texts), key=len, default=user)
        notes = _notes(passage, user, is_second=stage == "supplement")
        if not stage.startswith(("extract", "entities", "supplement")):
            notes = {**notes, "entities": _names_in(user)[:NAMES_CHOSEN]}
        return {
            **{name: _always(note) for name, note in notes.items()},
            "passages": partial(_of_passages, texts, user, stage),
            "summary": _always(_some(passage, SUMMARY_WORDS)),
            "description": _always(_some(passage, DESCRIPTION_WORDS)),
            "reasoning": _always(_some(user, REASON_WORDS)),
            "gist": _always(_some(passage, SUMMARY_WORDS)),
        }


def wanted_by(request: ChatRequest) -> Mapping[str, Any]:
    """Return the schema of the requested reply, by JSON schema or by the prompt; else {}."""
    if request.schema is None and request.reply_model is not None:
        return strict_schema(request.reply_model)
    return request.schema or {}


def _notes(passage: str, user: str, *, is_second: bool) -> dict[str, list[str]]:
    """Return the notes on a passage, by field of the reply."""
    words = passage.split()
    most = max(1, len(words) // WORDS_PER_ENTITY)
    longest = sorted({word.strip(".,;:!?") for word in words} - {""}, key=len, reverse=True)
    names = (_names_in(passage) or longest or ["text"])[:most]
    match = _COUNT.search(user)
    count_wanted = int(match.group(1)) if match else QUESTIONS
    relations = [
        f"{head}|{_after(passage, head, DESCRIPTION_WORDS)}|{tail}"
        for head, tail in pairwise(names)
    ]
    if is_second:
        few = range(1, 1 + round(count_wanted * NEW_OF_QUESTIONS))
        return {
            "entities": [f"{n}|{names[-n % len(names)]}|THING" for n in few],
            "relations": [f"{n}|{relations[-n % len(relations)]}" for n in few if relations],
        }
    step = max(1, len(words) // max(1, count_wanted))
    # No questions are asked about a passage of a few words.
    starts = range(0, len(words) - 7, step)
    topics = [" ".join(words[at : at + 7]).strip(".,;:!?") for at in starts]
    return {
        "entities": [f"{name}|THING" for name in names],
        "relations": relations,
        "questions": [f"What is told of {topic}?" for topic in topics[:count_wanted]],
    }


def _of_passages(
    texts: Sequence[tuple[str, str]], user: str, stage: str, node: Any
) -> list[dict[str, Any]]:
    """Return the notes of passages that share a call, in the form of the schema."""
    is_second = stage == "supplement"
    return [
        {"n": int(at), **_fields_of_notes(_notes(text, user, is_second=is_second), node)}
        for at, text in texts
        if at.isdigit()
    ]


def _fields_of_notes(notes: Mapping[str, Any], node: Mapping[str, Any]) -> dict[str, Any]:
    fields = (node.get("items") or {}).get("properties", {})
    return {name: value for name, value in notes.items() if name in fields}


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda node: value


def _nothing(node: Any) -> Any:
    if "enum" in node:
        return node["enum"][0]
    return {"array": [], "integer": 1}.get(str(node.get("type")), "")


def _names_in(text: str) -> list[str]:
    names = dict.fromkeys(_NAME.findall(text))
    # The first word of a sentence is mostly short, and no name.
    return [name for name in names if len(name) >= _SHORTEST]


def _some(text: str, count: int) -> str:
    return " ".join(text.replace("|", " ").split()[:count])


def _after(text: str, name: str, count: int) -> str:
    return _some(text[max(0, text.find(name)) :][: 12 * count], count)
