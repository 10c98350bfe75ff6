"""What a run will use, by a rehearsal: a few items with a stand-in for the chat model.

Every system sends the requests that it would send, so that a new one needs nothing here. The
replies are made up, of the size that is to be expected; whether a question is answered at once or
never is what a run's cost hangs on, so both are rehearsed and the plan is the range between them.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from qrmem.agents.state import silent
from qrmem.eval.harness import RunOptions
from qrmem.eval.report.results import Result, Spent, read_results
from qrmem.eval.report.tables import number
from qrmem.eval.runner import SHORT_ENOUGH
from qrmem.eval.running import PreparedRun, run_made
from qrmem.extraction.rules_tagger import tagged
from qrmem.llm.stub import wanted_by
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.memory.dry_run import StubEmbedder
from qrmem.types import ChatReply, ChatRequest

REHEARSED = 3
"""Items that are rehearsed."""
SPREAD = 0.3
"""By which share building may cost less or more than the rehearsed texts say, by their size."""

_TEXT = re.compile(r"<(text[0-9]*)[^>]*>\n(.*?)\n</\1>", re.DOTALL)
_SENTENCE_WORDS, _ASKED_WORDS, _NAMES, _QUESTIONS = 25, 12, 8, 5


@dataclass(frozen=True, slots=True)
class Forecast:
    """What one system is expected to use for all items, memories included as if it ran alone.

    Attributes:
        least: every question is answered at the first reading, in few words.
        most: none is, before it is forced, and every answer has to be shortened.
    """

    system: str
    least: Spent
    most: Spent


class StandIn:
    """A chat model that says what could be said of a request: names, sentences, a verdict."""

    def __init__(self, name: str, *, answers: bool) -> None:
        self._name = name
        self._answers = answers
        self._has_options = False
        self._rounds = 0

    @property
    def name(self) -> str:
        """Name of the model that it stands for."""
        return self._name

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return a reply that fits the request's schema."""
        said = "\n".join(message.content for message in request.messages)
        texts = [match[2] for match in _TEXT.finditer(said)] or [said[-2000:]]
        self._has_options = "\nOptions:\n(" in said
        schema = wanted_by(request)
        if not schema:
            # Where nothing is ever found, a memory changes in every round (ILM-TR).
            self._rounds += not self._answers and "(Memory):" in said
            words = texts[0].split()
            at = self._rounds * _SENTENCE_WORDS % max(1, len(words))
            summary = _words(" ".join([*words[at:], *words[:at]]), 4 * _SENTENCE_WORDS)
            if "(Surprise):" in said:
                summary = f"(Summary): {summary}\n(Surprise): {_words(texts[0], _ASKED_WORDS)}"
            return ChatReply(summary)
        made = self._object(schema, texts)
        return ChatReply(json.dumps(made, ensure_ascii=False))

    def _object(self, node: Mapping[str, Any], texts: Sequence[str]) -> dict[str, Any]:
        properties = node.get("properties", {})
        return {name: self._value(name, own, texts) for name, own in properties.items()}

    def _value(self, name: str, node: Mapping[str, Any], texts: Sequence[str]) -> Any:
        if node.get("enum") == [-2, -1]:
            return -2 if self._answers else -1
        if "enum" in node:
            return node["enum"][0]
        if node.get("type") == "array":
            items = node.get("items", {})
            if items.get("type") == "object":
                return [{**self._object(items, [text]), "n": n} for n, text in enumerate(texts, 1)]
            # A prompt may show a summary first; the passage is what it is about.
            return [1] if items.get("type") == "integer" else _list(name, max(texts, key=len))
        if name == "answer" and self._has_options:
            return "(A)"
        if name == "answer" and self._answers:
            return _words(texts[0], SHORT_ENOUGH)
        plain = {"integer": 1, "number": 1.0, "boolean": True}
        return plain.get(str(node.get("type")), _words(texts[0], _SENTENCE_WORDS))


def _list(name: str, text: str) -> list[str]:
    names = [mention.name for mention in tagged(text).mentions][:_NAMES]
    words = text.split()
    asked = (
        words[at : at + _ASKED_WORDS] for at in range(0, _QUESTIONS * _ASKED_WORDS, _ASKED_WORDS)
    )
    made = {
        "entities": [f"{name}|THING" for name in names],
        "relations": [f"{one}|{_words(text, 8)}|{other}" for one, other in pairwise(names)],
        # Of other words each: questions that are alike are not taken.
        "questions": [f"{' '.join(question)}?" for question in asked if question],
        "quotes": [_words(text, 10)],
        "memos": [f"{n}-{n + 3}|{_words(text, 4)}|{_words(text, _SENTENCE_WORDS)}" for n in (1, 5)],
    }
    return made.get(name, names[:_QUESTIONS])


def _words(text: str, count: int) -> str:
    return " ".join(text.split()[:count])


async def forecasts(made: PreparedRun) -> list[Forecast]:
    """Return what each system of a run would use; nothing is sent."""
    is_whole = len(made.items) <= REHEARSED
    least, most = [
        await _rehearsed(made, answers=answers, spread=1 if is_whole else spread)
        for answers, spread in ((True, 1 - SPREAD), (False, 1 + SPREAD))
    ]
    return [Forecast(name, least[name], most[name]) for name in least]


async def _rehearsed(made: PreparedRun, *, answers: bool, spread: float) -> dict[str, Spent]:
    rehearsed = replace(made, items=made.items[:REHEARSED])
    name, counter = made.settings.embedder, open_tokenizer(made.settings.tokenizer)
    is_remote = name.startswith("openai:")
    options = RunOptions(
        listener=silent,
        chat=StandIn(made.settings.model, answers=answers),
        embedder=StubEmbedder(name, None, counter) if is_remote else None,
        is_rehearsal=True,
    )
    with TemporaryDirectory() as folder:
        await run_made(rehearsed, Path(folder), options)
        results = read_results(Path(folder))
    for_each, once = (
        _read(made, each=each) / _read(rehearsed, each=each) for each in (True, False)
    )
    return {
        name: _all(
            result, len(made.items), spread * (for_each if _is_built_for_each(result) else once)
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


def _all(result: Result, items: float, buildings: float) -> Spent:
    """Return what a system used, scaled to all items and to everything that is built."""
    each, built = result.online, result.alone
    money = [
        times * spent.money
        for times, spent in ((items, each), (buildings, built))
        if spent.money is not None
    ]
    return Spent(
        calls=items * each.calls + buildings * built.calls,
        tokens=items * each.tokens + buildings * built.tokens,
        money=sum(money) if money else None,
    )


def plan_lines(made: PreparedRun, found: Sequence[Forecast]) -> list[str]:
    """Return a plan for people."""
    head = (
        f"{made.spec.task}: {len(made.items)} items, {made.settings.model}, window "
        f"{made.settings.window}; rehearsed on {min(REHEARSED, len(made.items))}, nothing was sent"
    )
    return [head, *(f"  {one.system:24} {_between(one.least, one.most)}" for one in found)]


def _between(least: Spent, most: Spent) -> str:
    told = (
        f"{least.calls:,.0f}-{most.calls:,.0f} calls, {least.tokens:,.0f}-{most.tokens:,.0f} tokens"
    )
    if least.money is None or most.money is None:
        return told
    return f"{told}, {number(least.money)}-{number(most.money)} in money"
