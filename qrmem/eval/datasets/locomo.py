"""LoCoMo: questions about conversations of two people over months (Maharana et al., 2024)."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from qrmem.eval.datasets.reading import dataset_of, each, text_of
from qrmem.eval.records import Context, Dataset, Item
from qrmem.eval.registry import dataset
from qrmem.graph import dialog
from qrmem.text.normalise import normalise
from qrmem.types import Turn
from qrmem.types.turns import turn_id

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

    Each turn is a document, its photo as its caption; gold documents are the evidence turns.
    """
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    rows = (row for file in files for row in each(file, partial(_chat, file=file)))
    return dataset_of("locomo", rows, *files)


def _chat(record: Any, file: Path) -> tuple[Context, list[Item]]:
    name = str(record.get("sample_id", file.stem))
    turns = dict(_turns(record.get("conversation", record)))
    context = Context(name, tuple(map(dialog.as_document, turns.values())))
    items = [_item(f"{name}-{n}", name, asked, turns) for n, asked in enumerate(record["qa"], 1)]
    return context, items


def _turns(chat: Any) -> Iterator[tuple[str, Turn]]:
    """Yield the turns of all sessions with their places ("D1:3"), numbered from 1."""
    numbers = count(1)
    for session in count(1):
        if f"session_{session}_date_time" not in chat and f"session_{session}" not in chat:
            return
        said = chat.get(f"session_{session}", ())
        time = said and datetime.strptime(
            text_of(chat, f"session_{session}_date_time"), "%I:%M %p on %d %B, %Y"
        )
        for turn in said:
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
                    dialog.moment(time),
                    f"session-{session}",
                    speaker,
                ),
            )


def _item(id: str, context: str, asked: Any, turns: Mapping[str, Turn]) -> Item:
    category = CATEGORIES[int(asked["category"]) - 1]
    is_answerable = category != "unanswerable"
    # Of ten conversations one names a turn that there is not, one writes "D:11:26".
    told = asked["evidence"] if is_answerable else ()
    places = [place for one in told for place in _PLACE.findall(one) or [one]]
    gold = dict.fromkeys(turns[place].id for place in places if place in turns)
    return Item(
        id=id,
        question=text_of(asked, "question"),
        answers=(str(asked["answer"]),) if is_answerable else (),
        context=context,
        gold=tuple(gold),
        labels={"category": category},
        is_answerable=is_answerable,
        absent=sum(place not in turns for place in places),
    )
