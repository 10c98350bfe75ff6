"""A chat model that replies at once, at the mean length of real replies: for runs made dry.

What it says is made of words of the prompt, so that the code behind it goes on as with a real one.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from qrmem.llm.replies import strict_schema
from qrmem.types import ChatReply, ChatRequest
from qrmem.types.usage import Course

# --- mean sizes of replies, as measured with models that read and answer in English ---------------
WORDS_PER_ENTITY = 30
"""Words of a passage for each entity that is found in it."""
DESCRIPTION_WORDS = 12
SUMMARY_WORDS = 100
REASON_WORDS = 15
QUESTIONS = 5
"""Questions where a prompt names no number."""
NEW_OF_QUESTIONS = 0.5
"""Entities and relations that a question adds."""
NAMES_CHOSEN = 3
WORDS_PER_TOKEN = 0.6
"""Of a reply that is as long as it may be: names and marks have more tokens than other words."""
# --------------------------------------------------------------------------------------------------

_MARK = re.compile(r"^</?text[^>]*>$\n?", re.MULTILINE)
_TEXT = re.compile(r"<(text[0-9]*)([^>]*)>\n(.*?)\n</\1>", re.DOTALL)
_NAME = re.compile(r"\b[A-Z][\w’']+(?: [A-Z][\w’']+)*")
_COUNT = re.compile(r"Questions wanted: (\d+)")
_SHORTEST = 5


class StubChat:
    """Stands for one model.

    Attributes:
        name: of the model.
        longest: the most tokens that a reply of each stage may have had.
    """

    def __init__(self, name: str, longest: dict[str, int], course: Course | None = None) -> None:
        """Make one.

        Args:
            longest: shared by the stubs of a run.
            course: whether summaries of a tree have a word, or all that they may have.
        """
        self.name = name
        self.longest = longest
        self._course = course

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return a reply of about the size that is to be expected."""
        known = self.longest.get(request.stage, 0)
        self.longest[request.stage] = max(known, request.max_tokens)
        user = request.messages[-1].content
        texts = [(m.group(2).strip(), m.group(3)) for m in _TEXT.finditer(user)]
        wanted = wanted_by(request).get("properties", {})
        if not wanted:
            plain = _MARK.sub("", user)  # a reply with marks in it would count as an echo
            lengths = {"shortest": 1, "longest": int(request.max_tokens * WORDS_PER_TOKEN)}
            summary = _some(plain, lengths.get(self._course or "", SUMMARY_WORDS))
            is_labelled = any("(Surprise):" in message.content for message in request.messages)
            surprise = _some(plain, REASON_WORDS)
            labelled = f"(Summary): {summary}\n(Surprise): {surprise}"
            return ChatReply(labelled if is_labelled else summary)
        fields = self._fields(texts, user, request.stage)
        said = {name: fields.get(name, _nothing)(node) for name, node in wanted.items()}
        return ChatReply(json.dumps(said, ensure_ascii=False))

    def _fields(
        self, texts: Sequence[tuple[str, str]], user: str, stage: str
    ) -> Mapping[str, Callable[[Any], Any]]:
        passage = max((text for _, text in texts), key=len, default=user)
        notes = _notes(passage, user, is_second=stage == "supplement")
        if not stage.startswith(("extract", "entities", "supplement")):
            notes = {**notes, "entities": _named(user)[:NAMES_CHOSEN]}
        return {
            **{name: _always(found) for name, found in notes.items()},
            "passages": partial(_of_passages, texts, user, stage),
            "summary": _always(_some(passage, SUMMARY_WORDS)),
            "description": _always(_some(passage, DESCRIPTION_WORDS)),
            "reasoning": _always(_some(user, REASON_WORDS)),
            "gist": _always(_some(passage, SUMMARY_WORDS)),
        }


def wanted_by(request: ChatRequest) -> Mapping[str, Any]:
    """Return the schema of the reply that a request wants, in JSON or in words; {} for none."""
    if request.schema is None and request.reply_model is not None:
        return strict_schema(request.reply_model)
    return request.schema or {}


def _notes(passage: str, user: str, *, is_second: bool) -> dict[str, list[str]]:
    """Return what is noted of a passage, by field of the reply."""
    words = passage.split()
    most = max(1, len(words) // WORDS_PER_ENTITY)
    longest = sorted({word.strip(".,;:!?") for word in words} - {""}, key=len, reverse=True)
    names = (_named(passage) or longest or ["text"])[:most]
    match = _COUNT.search(user)
    wanted = int(match.group(1)) if match else QUESTIONS
    relations = [
        f"{head}|{_after(passage, head, DESCRIPTION_WORDS)}|{tail}"
        for head, tail in pairwise(names)
    ]
    if is_second:
        few = range(1, 1 + round(wanted * NEW_OF_QUESTIONS))
        return {
            "entities": [f"{n}|{names[-n % len(names)]}|THING" for n in few],
            "relations": [f"{n}|{relations[-n % len(relations)]}" for n in few if relations],
        }
    step = max(1, len(words) // max(1, wanted))
    # A passage of a few words makes nobody ask.
    starts = range(0, len(words) - 7, step)
    asked = [" ".join(words[at : at + 7]).strip(".,;:!?") for at in starts]
    return {
        "entities": [f"{name}|THING" for name in names],
        "relations": relations,
        "questions": [f"What is told of {said}?" for said in asked[:wanted]],
    }


def _of_passages(
    texts: Sequence[tuple[str, str]], user: str, stage: str, node: Any
) -> list[dict[str, Any]]:
    """Return the notes of passages that share a call, as a schema's node wants them."""
    is_second = stage == "supplement"
    return [
        {"n": int(at), **_kept(_notes(text, user, is_second=is_second), node)}
        for at, text in texts
        if at.isdigit()
    ]


def _kept(notes: Mapping[str, Any], node: Mapping[str, Any]) -> dict[str, Any]:
    fields = (node.get("items") or {}).get("properties", {})
    return {name: value for name, value in notes.items() if name in fields}


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda node: value


def _nothing(node: Any) -> Any:
    if "enum" in node:
        return node["enum"][0]
    return {"array": [], "integer": 1}.get(str(node.get("type")), "")


def _named(text: str) -> list[str]:
    found = dict.fromkeys(_NAME.findall(text))
    # What begins a sentence is mostly short, and no name.
    return [name for name in found if len(name) >= _SHORTEST]


def _some(text: str, count: int) -> str:
    return " ".join(text.replace("|", " ").split()[:count])


def _after(text: str, name: str, count: int) -> str:
    return _some(text[max(0, text.find(name)) :][: 12 * count], count)
