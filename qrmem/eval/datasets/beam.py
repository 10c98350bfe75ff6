"""BEAM: questions of ten abilities about long chats of a user and an assistant (2025).

Tavakoli et al., "Beyond a Million Tokens" (arXiv 2510.27246). A chat is a folder, as released:
turns in `chat.json`, questions in `probing_questions/probing_questions.json`.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from qrmem.errors import UsageError
from qrmem.eval.datasets.reading import dataset_of, each, read_json, text_of
from qrmem.eval.records import Context, Dataset, Item
from qrmem.eval.registry import dataset
from qrmem.graph import dialog
from qrmem.text.normalise import normalise
from qrmem.types import Turn
from qrmem.types.turns import turn_id

_QUESTIONS = Path("probing_questions", "probing_questions.json")
_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary")
_MARK = re.compile(r"\s*->->[\s\d,]*(?:N/A)?\s*$")
"""What ends a content: places in the plan that the chat was written from."""
_UNANSWERABLE = "abstention"


@dataset(
    "beam",
    "BEAM: evidence turns within a token budget by ability, and answers",
    files=("*/chat.json", "chat.json"),
    where="https://github.com/mohammadtavakoli78/BEAM (chats/100K, 500K, 1M)",
    licence="see there",
    metrics=("evidence", "f1"),
)
def beam(path: Path) -> Dataset:
    """Load one chat, or a folder of chats of one size.

    Each turn is a document; gold documents are the turns that a question names as its source.
    """
    files = sorted(path.glob("*/chat.json")) if path.is_dir() else [path]
    rows = (_chat(file) for file in files)
    return dataset_of("beam", rows, *files)


def _chat(file: Path) -> tuple[Context, list[Item]]:
    asked = read_json(file.parent / _QUESTIONS)
    if not isinstance(asked, dict):
        raise UsageError(f"{file.parent / _QUESTIONS} holds no abilities with questions")
    turns: dict[int, Turn] = {}
    for batch in enumerate(each(file, lambda record: record), 1):
        for given, turn in _turns(*batch, len(turns)):
            turns.setdefault(given, turn)
    name = file.parent.name
    context = Context(name, tuple(map(dialog.as_document, turns.values())))
    items = [
        _item(f"{name}-{ability}-{n}", name, ability, one, turns)
        for ability, questions in asked.items()
        for n, one in enumerate(questions, 1)
    ]
    return context, items


def _turns(number: int, batch: Any, before: int) -> Iterator[tuple[int, Turn]]:
    """Yield the turns of a batch with their ids in the data; a time holds until the next."""
    at, place = "", before
    for said in _flat(batch["turns"]):
        if said.get("time_anchor"):
            at = datetime.strptime(text_of(said, "time_anchor"), "%B-%d-%Y").isoformat()
        text = normalise(_MARK.sub("", str(said["content"])))
        if not text.strip():
            continue
        place += 1
        role, session = text_of(said, "role"), f"batch-{number}"
        yield int(said["id"]), Turn(turn_id(place), place, role, text, at, session)


def _item(id: str, context: str, ability: str, asked: Any, turns: Mapping[int, Turn]) -> Item:
    is_answerable = ability != _UNANSWERABLE
    sources = _flat(asked.get("source_chat_ids", ())) if is_answerable else []
    answer = next((str(asked[key]) for key in _ANSWERS if asked.get(key)), "")
    return Item(
        id=id,
        question=text_of(asked, "question"),
        answers=(answer,) if is_answerable and answer else (),
        context=context,
        gold=tuple(dict.fromkeys(turns[one].id for one in sources if one in turns)),
        labels={"ability": ability},
        is_answerable=is_answerable,
        absent=sum(one not in turns for one in sources),
    )


def _flat(found: Any) -> list[Any]:
    """Return what lists and mappings of lists hold, in order."""
    if isinstance(found, Mapping) and "content" not in found:
        found = list(found.values())
    if isinstance(found, list | tuple):
        return [one for part in found for one in _flat(part)]
    return [found]
