"""Data sets of long conversations: LoCoMo, BEAM, MTBench+."""

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from qrmem.errors import UsageError
from qrmem.eval.datasets.data_files import dataset_of, each, read_json, text_of
from qrmem.eval.items import Context, Dataset, Item
from qrmem.eval.registry import dataset
from qrmem.memory.chat import message_log, stored_turns
from qrmem.text.normalise import normalise
from qrmem.types import Document, Turn
from qrmem.types.turns import turn_id

T = TypeVar("T", bound=Hashable)

# LoCoMo: questions about conversations of two people over months (Maharana et al., 2024).


CATEGORIES = ("multi-hop", "temporal", "open", "single", "unanswerable")
_PLACE = re.compile(r"D\d+:\d+")


@dataset(
    "locomo",
    "LoCoMo: evidence turns within a token budget, and answers",
    files=("locomo10.json", "*.json"),
    where="https://github.com/snap-research/locomo (data/locomo10.json)",
    licence="CC BY-NC 4.0",
    metrics=("evidence", "f1"),
)
def locomo(path: Path) -> Dataset:
    """Load the file of all conversations, a file of one, or a folder of such files.

    Each turn is a document, with a photo's caption; gold documents are the evidence turns.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    rows = (row for file in files for row in each(file, partial(_chat, file=file)))
    return dataset_of("locomo", rows, *files)


def _chat(record: Any, file: Path) -> tuple[Context, list[Item]]:
    name = str(record.get("sample_id", file.stem))
    turns = dict(_turns(record.get("conversation", record)))
    context = Context(name, tuple(map(stored_turns.as_document, turns.values())))
    items = [
        _item(f"{name}-{n}", name, question, turns) for n, question in enumerate(record["qa"], 1)
    ]
    return context, items


def _turns(chat: Any) -> Iterator[tuple[str, Turn]]:
    """Yield the turns of all sessions with their places ("D1:3"), numbered from 1."""
    numbers = count(1)
    for session in count(1):
        if f"session_{session}_date_time" not in chat and f"session_{session}" not in chat:
            return
        session_turns = chat.get(f"session_{session}", ())
        time = session_turns and datetime.strptime(
            text_of(chat, f"session_{session}_date_time"), "%I:%M %p on %d %B, %Y"
        )
        for turn in session_turns:
            number, speaker = next(numbers), text_of(turn, "speaker")
            photo = turn.get("blip_caption")
            parts = (turn["text"], f"[shares {photo}]" if photo else "")
            yield (
                str(turn["dia_id"]),
                Turn(
                    turn_id(number),
                    number,
                    "user" if speaker == chat["speaker_a"] else "assistant",
                    normalise(" ".join(filter(None, parts))),
                    message_log.moment(time),
                    f"session-{session}",
                    speaker,
                ),
            )


def _item(id: str, context: str, asked: Any, turns: Mapping[str, Turn]) -> Item:
    category = CATEGORIES[int(asked["category"]) - 1]
    is_answerable = category != "unanswerable"
    # One of the ten conversations names a turn that does not exist, one writes "D:11:26".
    evidence = asked["evidence"] if is_answerable else ()
    places = [place for one in evidence for place in _PLACE.findall(one) or [one]]
    answer = str(asked["answer"]) if is_answerable else ""
    item = _evidenced_item(id, context, asked, answer, places, turns)
    return replace(item, labels={"category": category}, is_answerable=is_answerable)


def _evidenced_item(
    id: str,
    context: str,
    asked: Any,
    answer: str,
    sources: Sequence[T],
    turns: Mapping[T, Turn],
) -> Item:
    """Return an item whose gold documents are the turns that it names as its sources."""
    return Item(
        id=id,
        question=text_of(asked, "question"),
        answers=(answer,) if answer else (),
        context=context,
        gold=tuple(dict.fromkeys(turns[one].id for one in sources if one in turns)),
        absent=sum(one not in turns for one in sources),
    )


# BEAM: questions of ten abilities about long chats of a user and an assistant (2025).
#
# Tavakoli et al., "Beyond a Million Tokens" (arXiv 2510.27246). A chat is a folder, as released:
# turns in `chat.json`, questions in `probing_questions/probing_questions.json`.


_QUESTIONS = Path("probing_questions", "probing_questions.json")
_ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary")
_MARK = re.compile(r"\s*->->[\s\d,]*(?:N/A)?\s*$")
"""Text at the end of a content: places in the plan of the generated chat."""
_UNANSWERABLE = "abstention"


@dataset(
    "beam",
    "BEAM: evidence turns within a token budget, and answers",
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
    rows = (_beam_chat(file) for file in files)
    return dataset_of("beam", rows, *files)


def _beam_chat(file: Path) -> tuple[Context, list[Item]]:
    question_data = read_json(file.parent / _QUESTIONS)
    if not isinstance(question_data, dict):
        raise UsageError(f"{file.parent / _QUESTIONS} holds no abilities with questions")
    turns: dict[int, Turn] = {}
    for batch in enumerate(each(file, lambda record: record), 1):
        for turn_data, turn in _beam_turns(*batch, len(turns)):
            turns.setdefault(turn_data, turn)
    name = file.parent.name
    context = Context(name, tuple(map(stored_turns.as_document, turns.values())))
    items = [
        _beam_item(f"{name}-{ability}-{n}", name, ability, one, turns)
        for ability, questions in question_data.items()
        for n, one in enumerate(questions, 1)
    ]
    return context, items


def _beam_turns(number: int, batch: Any, before: int) -> Iterator[tuple[int, Turn]]:
    """Yield the turns of a batch with their ids in the data; a time applies until the next one."""
    at, place = "", before
    for turn_data in _flat(batch["turns"]):
        if turn_data.get("time_anchor"):
            at = datetime.strptime(text_of(turn_data, "time_anchor"), "%B-%d-%Y").isoformat()
        text = normalise(_MARK.sub("", str(turn_data["content"])))
        if not text.strip():
            continue
        place += 1
        role, session = text_of(turn_data, "role"), f"batch-{number}"
        yield int(turn_data["id"]), Turn(turn_id(place), place, role, text, at, session)


def _beam_item(id: str, context: str, ability: str, asked: Any, turns: Mapping[int, Turn]) -> Item:
    is_answerable = ability != _UNANSWERABLE
    sources = _flat(asked.get("source_chat_ids", ())) if is_answerable else []
    answers = [str(asked[key]) for key in _ANSWERS if asked.get(key)] if is_answerable else []
    item = _evidenced_item(id, context, asked, next(iter(answers), ""), sources, turns)
    return replace(
        item,
        labels={"ability": ability},
        is_answerable=is_answerable,
        rubric=tuple(map(str, asked.get("rubric", ()))),
    )


def _flat(found: Any) -> list[Any]:
    """Return the items of lists, and of mappings of lists, in order."""
    if isinstance(found, Mapping) and "content" not in found:
        found = list(found.values())
    if isinstance(found, list | tuple):
        return [one for part in found for one in _flat(part)]
    return [found]


# MTBench+: long sessions whose last question goes back to an earlier topic; a judge rates it.


_TOPIC = re.compile(r"([a-z]+-\d+)")


@dataset(
    "mtbenchplus",
    "MTBench+ sessions; answers are rated by a judge",
    files=("mtbenchplus.json", "mtbenchplus/mtbenchplus.json"),
    where="https://github.com/LuJunru/MemoChat (data/mtbenchplus)",
    licence="MIT",
    metrics=("recall@5", "recall@10"),
)
def mtbenchplus(path: Path) -> Dataset:
    """Load the sessions: each user turn is a document, the last one the question.

    The file has no assistant's turns: the tested system replies. Gold documents are
    the turns of the topics in the last turn's `turn-info`.
    """
    return dataset_of("mtbenchplus", each(path, _session), path)


def _session(record: Any) -> tuple[Context, list[Item]]:
    name = str(record["id"])
    turns = [turn for turn in record["conversations"] if turn["from"] == "human"]
    *earlier, last = turns
    topics = set(_TOPIC.findall(text_of(last, "turn-info")))
    documents, gold = [], []
    for n, turn in enumerate(earlier, 1):
        id = turn_id(n)
        documents.append(Document(normalise(text_of(turn, "value")), title=f"Turn {n}", id=id))
        if set(_TOPIC.findall(text_of(turn, "turn-info"))) & topics:
            gold.append(id)
    item = Item(
        id=name,
        question=text_of(last, "value"),
        answers=(),
        context=name,
        gold=tuple(gold),
        labels={"type": str(record["type"]), "topics": " ".join(sorted(topics))},
    )
    return Context(name, tuple(documents)), [item]
