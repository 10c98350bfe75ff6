"""MTBench+: long sessions whose last question goes back to an earlier topic; a judge rates it."""

import re
from pathlib import Path
from typing import Any

from qrmem.eval.datasets.reading import dataset_of, each, text_of
from qrmem.eval.records import Context, Dataset, Item
from qrmem.eval.registry import dataset
from qrmem.text.normalise import normalise
from qrmem.types import Document
from qrmem.types.turns import turn_id

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

    The assistant's turns are empty in the file: the tested system fills them. Gold documents are
    the turns of the topics that the last turn's `turn-info` names.
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
