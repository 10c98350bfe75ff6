"""The plan of a run's usage, by a rehearsal of a few items with a stand-in for the chat model.

Every system sends its own requests, so a new system needs nothing here. The shortest and the
longest case that replies can cause are rehearsed (`StandIn`); the plan is the range between them.
It does not include retries after unreadable replies or server failures.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from qrmem.agents.build_state import silent
from qrmem.eval.harness import RunOptions
from qrmem.eval.report.results import Result, Spent, read_results
from qrmem.eval.report.tables import number
from qrmem.eval.running import SHORT_ENOUGH, PreparedRun, run_made
from qrmem.extraction.rules_tagger import tagged
from qrmem.llm.forecast import COUNTER, SPREAD_IN, WORDS_PER_TOKEN, wanted_by
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.memory.dry_run import StubEmbedder
from qrmem.types import ChatReply, ChatRequest, Listener
from qrmem.types.usage import Course

# A stand-in for the chat model in a rehearsal, for one of two courses.
#
# The shortest: every question is answered at once, nothing is extracted, every text is a few
# words. The longest: every answer must be forced, everything that may be extracted or requested
# is, and summaries have their maximum usual length. Replies of models that can be parsed lie
# between the two.


Json = Any

_TEXT = re.compile(r"<(text[0-9]*)([^>]*)>\n(.*?)\n</\1>", re.DOTALL)
_MARK = re.compile(r"⟨(\d+)⟩")
_LISTED = re.compile(r"^(.+) \(\d+\)$", re.MULTILINE)
_CAPITAL = re.compile(r"\b[A-Z]\w+")
_COUNT = re.compile(r"Questions wanted: (\d+)")
_REASON_WORDS = 60
"""Words of a reason: one to three sentences."""
_ANSWER_WORDS, _ITEM_WORDS, _GIST_WORDS = 4 * SHORT_ENOUGH, 12, 25
"""Words of an answer, an item and a gist; gists are short, to leave room for pages."""
_TEXT_WORDS = int(300 * WORDS_PER_TOKEN)
"""Words of a summary of 300 tokens, the length that trees and walks request."""
_PARTS = 5
"""Maximum number of sub-questions of a question."""


@dataclass(frozen=True, slots=True)
class _RequestView:
    """The relevant parts of a request.

    Attributes:
        texts: label and text of each fenced part.
        most: maximum number of words of a reply.
    """

    name: str
    said: str
    texts: Sequence[tuple[str, str]]
    most: int

    @classmethod
    def of(cls, request: ChatRequest) -> "_RequestView":
        prompt_text = "\n".join(message.content for message in request.messages)
        texts = [(match[2].strip(), match[3]) for match in _TEXT.finditer(prompt_text)]
        most = max(SHORT_ENOUGH, int(request.max_tokens * WORDS_PER_TOKEN))
        name = request.prompt.partition(".")[0]
        return cls(name, prompt_text, texts or [("", prompt_text[-2000:])], most)

    @property
    def has_options(self) -> bool:
        return "\nOptions:\n(" in self.said

    @property
    def longest(self) -> str:
        """The longest fenced text: a prompt may have a summary before its passage."""
        return max((text for _, text in self.texts), key=len).replace("[[", "").replace("]]", "")

    def labels(self, word: str) -> list[int]:
        """Return the numbers of the parts with a label, the shortest part first."""
        sized = sorted((len(text), label) for label, text in self.texts if label.startswith(word))
        return [int(label.split()[-1]) for _, label in sized]


class StandIn:
    """A stand-in for the chat model; except in a loop's memory, replies depend only on requests."""

    def __init__(self, name: str, course: Course) -> None:
        """Replace the model of a name."""
        self._name = name
        self._is_longest = course == "longest"
        self._rounds = 0

    @property
    def name(self) -> str:
        """Name of the model that it replaces."""
        return self._name

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return a valid reply for the shortest or the longest case."""
        request_seen, schema = _RequestView.of(request), wanted_by(request)
        if not schema:
            return ChatReply(self._in_words(request_seen))
        reply = _longest if self._is_longest else _shortest
        properties = schema.get("properties", {})
        reply_fields = {name: reply(name, node, request_seen) for name, node in properties.items()}
        return ChatReply(json.dumps(reply_fields, ensure_ascii=False))

    def _in_words(self, seen: _RequestView) -> str:
        if not self._is_longest:
            is_labelled = "(Surprise):" in seen.said
            return "(Summary): Yes.\n(Surprise): None" if is_labelled else _answer(seen)
        if seen.name == "chat":
            return _words(seen.said, seen.most)
        # With a memory that changes in every round, no loop ends early (ILM-TR).
        self._rounds += "(Memory):" in seen.said
        words = seen.texts[0][1].split()
        at = self._rounds * _REASON_WORDS % max(1, len(words))
        # Without its two labels, a node is requested once more.
        return _words(" ".join([*words[at:], *words[:at]]), min(seen.most, _TEXT_WORDS))


def _answer(seen: _RequestView) -> str:
    return "(A)" if seen.has_options else "Yes."


# --- the shortest course --------------------------------------------------------------------------


def _shortest(name: str, node: Mapping[str, Json], seen: _RequestView) -> Json:
    values_by_name: Mapping[str, Callable[[], Json]] = {
        "action": lambda: -2,
        "answer": lambda: _answer(seen),
        "part": lambda: -1,
        "label": lambda: len(_MARK.findall(seen.longest)) - 1,
        "code": lambda: "",
        # Without any entity a shared call is of no use, and its passages are read alone.
        "entities": lambda: [f"{name}|THING" for name in _names(seen.longest, seen)[:1]],
        "passages": lambda: _of_each(node, seen, _shortest),
    }
    if name in values_by_name:
        return values_by_name[name]()
    plain: Mapping[str, Json] = {"array": [], "integer": 1, "number": 1.0, "boolean": True}
    return plain.get(str(node.get("type")), "Yes.")


# --- the longest course ---------------------------------------------------------------------------


def _longest(name: str, node: Mapping[str, Json], seen: _RequestView) -> Json:
    passage = seen.longest
    limits = {"answer": _ANSWER_WORDS, "gist": _GIST_WORDS}
    values_by_name: Mapping[str, Callable[[], Json]] = {
        "action": lambda: -1,
        "reasoning": lambda: _words(seen.said, _REASON_WORDS),
        "part": lambda: 0,
        "label": lambda: 0,
        "pages": lambda: seen.labels("page"),
        "notes": lambda: list(range(1, 1 + passage.count("\n") + 1)),
        "passages": lambda: _of_each(node, seen, _longest),
        "entities": partial(_entities, passage, seen),
        "relations": partial(_relations, passage, seen),
        "questions": partial(_questions, passage, seen),
        "quotes": lambda: [_words(passage, _ITEM_WORDS)],
        "memos": lambda: [f"{n}|{_words(passage, 4)}|{passage[:100]}" for n in range(1, 9, 2)],
    }
    if name == "answer" and seen.has_options:
        return "(A)"
    if name in values_by_name:
        return values_by_name[name]()
    plain: Mapping[str, Json] = {"array": [], "integer": 1, "number": 1.0, "boolean": True}
    most = min(limits.get(name, _TEXT_WORDS), seen.most)
    return plain.get(str(node.get("type")), _words(passage, most))


def _entities(passage: str, seen: _RequestView) -> list[str]:
    if names_listed := _LISTED.findall(passage):
        return names_listed[
            :: max(1, len(names_listed) // _PARTS)
        ]  # for a trial: names from all parts of the list
    before = "1|" if seen.name.endswith("-asked") or "number|name" in seen.said else ""
    return _within(seen, [f"{before}{name}|THING" for name in _names(passage, seen)])


def _relations(passage: str, seen: _RequestView) -> list[str]:
    """Relate every two names, as many as fit a reply: a repeated pair costs a merge.

    This needs the same direction, so the names have the same order in all passages.
    """
    before = "1|" if seen.name.endswith("-asked") or "number|name" in seen.said else ""
    words = _words(passage, _ITEM_WORDS).replace("|", " ")
    # Names that the rules find come first: they recur in other passages.
    pairs = dict.fromkeys(combinations(sorted(_names_in(passage)), 2))
    pairs |= dict.fromkeys(combinations(sorted(_names(passage, seen)), 2))
    return _within(seen, [f"{before}{a}|{words}|{b}" for a, b in pairs])


def _questions(passage: str, seen: _RequestView) -> list[str]:
    """Make questions of different words: similar questions are not accepted."""
    match, words = _COUNT.search(seen.said), passage.split()
    count_wanted = int(match[1]) if match else _PARTS
    step = max(_ITEM_WORDS, len(words) // max(1, count_wanted))
    word_groups = (words[at : at + _ITEM_WORDS] for at in range(0, count_wanted * step, step))
    return [f"{' '.join(question)}?" for question in word_groups if question]


def _names(passage: str, seen: _RequestView) -> list[str]:
    """Return the names that a model may give: those of the rules, then every capitalised word.

    For several passages in one call only those of the rules count: a passage without any is read
    again alone.
    """
    more = [] if seen.name.endswith("-together") else _CAPITAL.findall(passage)
    return list(dict.fromkeys([*_names_in(passage), *more]))


def _names_in(passage: str) -> list[str]:
    return [mention.name for mention in tagged(passage).mentions]


def _within(seen: _RequestView, items: Sequence[str]) -> list[str]:
    """Return the first items that fit a reply together."""
    items_kept, tokens_left = [], seen.most
    for item in items:
        tokens_left -= 3 + len(re.findall(r"\w+", item))
        if tokens_left < 0:
            break
        items_kept.append(item)
    return items_kept


# --- both -----------------------------------------------------------------------------------------


def _of_each(
    node: Mapping[str, Json],
    seen: _RequestView,
    reply: Callable[[str, Mapping[str, Json], _RequestView], Json],
) -> list[dict[str, Json]]:
    """Return the notes of passages that share a call, each as if it were alone."""
    fields = (node.get("items") or {}).get("properties", {})
    notes_made = []
    for label, text in seen.texts:
        if label.isdigit():
            alone = _RequestView(
                seen.name, seen.said, [(label, text)], seen.most // len(seen.texts)
            )
            notes = {name: reply(name, field_node, alone) for name, field_node in fields.items()}
            notes_made.append({**notes, "n": int(label)})
    return notes_made


def _words(text: str, count: int) -> str:
    return " ".join(text.split()[:count])


REHEARSED = 3
"""Number of items to rehearse."""
SPREAD = 0.3
"""Relative error of the estimated cost of building, from the size of the rehearsed texts."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The expected usage of one system for all items, with its memories as if it ran alone.

    Attributes:
        least: usage in the shortest case.
        most: usage in the longest case.
    """

    system: str
    least: Spent
    most: Spent


async def forecasts(made: PreparedRun, listener: Listener = silent) -> list[Forecast]:
    """Return the expected usage of each system of a run; nothing is sent.

    Args:
        made: the run.
        listener: gets the progress of the rehearsals.
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
    """Return the characters that building reads: each context for every item, or once."""
    of_items = [item.context for item in made.items]
    contexts = of_items if each else dict.fromkeys(of_items)
    texts = (document.text for id in contexts for document in made.dataset.contexts[id].documents)
    return sum(map(len, texts)) or 1


def _is_built_for_each(result: Result) -> bool:
    """Return whether a memory is built for each question, not for each context."""
    return (
        1 < len(result.rows) == len({row.prediction.memory for row in result.rows.values()} - {""})
    )


def _all(result: Result, items: float, buildings: float, tokens: float) -> Spent:
    """Return a system's usage, scaled to all items and to all building.

    Args:
        tokens: tokens of the model per counted token, as its tokenizer differs.
    """
    each, built = result.online, result.alone
    money = [
        tokens * times * use.money
        for times, use in ((items, each), (buildings, built))
        if use.money is not None
    ]
    return Spent(
        calls=items * each.calls + buildings * built.calls,
        tokens=tokens * (items * each.tokens + buildings * built.tokens),
        money=sum(money) if money else None,
    )


def plan_lines(made: PreparedRun, found: Sequence[Forecast]) -> list[str]:
    """Return a plan as lines of text."""
    head = (
        f"{made.spec.task}: {len(made.items)} items, {made.settings.model}, window "
        f"{made.settings.window}; rehearsed on {min(REHEARSED, len(made.items))}, nothing was sent;"
        " unreadable replies come on top: up to five tries each"
    )
    return [head, *(f"  {one.system:24} {_between(one.least, one.most)}" for one in found)]


def _between(least: Spent, most: Spent) -> str:
    ranges = (
        f"{least.calls:,.0f}-{most.calls:,.0f} calls, {least.tokens:,.0f}-{most.tokens:,.0f} tokens"
    )
    if least.money is None or most.money is None:
        return ranges
    return f"{ranges}, {number(least.money)}-{number(most.money)} in money"
