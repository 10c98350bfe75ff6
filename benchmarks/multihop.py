"""The data sets for fitting and measuring retrieval, as passages and questions.

All but `xquad` ask for more than one passage; that one stands for ordinary questions.

The folder with the files is named by `QRMEM_DATA`; none of it is part of the project.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Passage = tuple[str, str]
"""Title and text."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the places of its gold passages in its corpus, and its right answers."""

    text: str
    gold: frozenset[int]
    answers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Corpus:
    """Passages with questions about them.

    Attributes:
        fitted: questions that weights may be fitted on.
        measured: questions that are measured; none of them is fitted on.
    """

    name: str
    passages: tuple[Passage, ...]
    fitted: tuple[Asked, ...]
    measured: tuple[Asked, ...]


def folder() -> Path:
    """Return the folder with the data.

    Raises:
        SystemExit: `QRMEM_DATA` doesn't name one.
    """
    path = Path(os.environ.get("QRMEM_DATA", ""))
    if not os.environ.get("QRMEM_DATA") or not path.is_dir():
        raise SystemExit("set QRMEM_DATA to the folder with the evaluation data")
    return path


def load(name: str, data: Path) -> Corpus:
    """Return one of `LOADERS`."""
    return LOADERS[name](data)


def _musique(data: Path) -> Corpus:
    base = data / "musique"
    passages = [(p["title"], p["text"]) for p in _json(base / "hippo_train_corpus1890.json")]
    asked = _asked_musique(passages, _json(base / "hippo_train100.json"))
    return Corpus("musique", tuple(passages), (), tuple(asked))


def _musique_fit(data: Path) -> Corpus:
    records = list(_lines(data / "musique" / "migres_dev200.jsonl"))
    passages = _own_passages(records)
    return Corpus("musique-fit", passages, tuple(_asked_musique(passages, records)), ())


def _musique_20(data: Path) -> Corpus:
    """Return the 20 questions of the first table in the README, over their own passages."""
    records = _json(data / "musique" / "hippo_train100.json")[:20]
    passages = _own_passages(records)
    return Corpus("musique-20", passages, (), tuple(_asked_musique(passages, records)))


def _own_passages(records: Iterable[Any]) -> tuple[Passage, ...]:
    passages = ((p["title"], p["paragraph_text"]) for r in records for p in r["paragraphs"])
    return tuple(dict.fromkeys(passages))


def _asked_musique(passages: Sequence[Passage], records: Iterable[Any]) -> Iterator[Asked]:
    place = {passage: n for n, passage in enumerate(passages)}
    for record in records:
        gold = [
            place[p["title"], p["paragraph_text"]]
            for p in record["paragraphs"]
            if p["is_supporting"]
        ]
        yield Asked(record["question"], frozenset(gold), _answers(record))


def _hotpotqa(data: Path) -> Corpus:
    base = data / "hotpotqa"
    train, measured = (list(_lines(base / f"rpt_{part}.jsonl")) for part in ("train300", "dev300"))
    small = _json(base / "hippo_train100.json")
    texts: dict[str, str] = {}
    for title, sentences in _json(base / "hippo_train_corpus994.json").items():
        texts.setdefault(title, "".join(sentences))
    for record in train + measured:
        context = record["context"]
        for title, sentences in zip(context["title"], context["sentences"], strict=True):
            texts.setdefault(title, "".join(sentences))
    for record in small:
        for title, sentences in record["context"]:
            texts.setdefault(title, "".join(sentences))
    return _by_title(
        "hotpotqa",
        texts,
        [(r["question"], r["supporting_facts"]["title"], _answers(r)) for r in train]
        + [_listed(r) for r in small],
        [(r["question"], r["supporting_facts"]["title"], _answers(r)) for r in measured],
    )


def _2wiki(data: Path) -> Corpus:
    base = data / "2wikimultihopqa"
    texts = {p["title"]: p["text"] for p in _json(base / "hippo_corpus6119.json")}
    records = _json(base / "migres_train500_llm_decomp.jsonl")
    for record in records:
        for title, sentences in record["context"]:
            texts.setdefault(title, " ".join(sentences))
    asked = [_listed(record) for record in records]
    return _by_title("2wikimultihopqa", texts, asked[:250], asked[250:])


def _xquad(data: Path) -> Corpus:
    """Return paragraphs under their titles; every other article's questions are fitted."""
    passages: list[Passage] = []
    asked: tuple[list[Asked], list[Asked]] = ([], [])
    for turn, article in enumerate(_json(data / "squad" / "xquad.en.json")["data"]):
        for paragraph in article["paragraphs"]:
            gold = frozenset([len(passages)])
            passages.append((article["title"].replace("_", " "), paragraph["context"]))
            asked[turn % 2].extend(
                Asked(qa["question"], gold, tuple(a["text"] for a in qa["answers"]))
                for qa in paragraph["qas"]
            )
    return Corpus("xquad", tuple(passages), tuple(asked[0]), tuple(asked[1]))


_Titled = tuple[str, list[str], tuple[str, ...]]
"""A question, the titles of its gold passages, its answers."""


def _answers(record: Any) -> tuple[str, ...]:
    return (record["answer"], *record.get("answer_aliases", ()))


def _listed(record: Any) -> _Titled:
    titles = [title for title, _ in record["supporting_facts"]]
    return record["question"], titles, _answers(record)


def _by_title(
    name: str,
    texts: dict[str, str],
    fitted: list[_Titled],
    measured: list[_Titled],
) -> Corpus:
    place = {title: n for n, title in enumerate(texts)}
    train, test = (
        tuple(
            Asked(question, frozenset(place[title] for title in gold), answers)
            for question, gold, answers in asked
        )
        for asked in (fitted, measured)
    )
    known = {question.text for question in test}
    train = tuple(question for question in train if question.text not in known)
    return Corpus(name, tuple(texts.items()), train, test)


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


LOADERS = {
    "musique": _musique,
    "musique-fit": _musique_fit,
    "musique-20": _musique_20,
    "hotpotqa": _hotpotqa,
    "2wikimultihopqa": _2wiki,
    "xquad": _xquad,
}
