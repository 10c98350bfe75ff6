"""HotpotQA, 2WikiMultihopQA and MuSiQue, in their official formats, the hub's and HippoRAG's."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from qrmem.errors import UsageError
from qrmem.eval.datasets.data_files import each, read_json, source_file, text_of, texts_of
from qrmem.eval.items import Context, Corpus, Dataset, Item
from qrmem.eval.registry import dataset
from qrmem.text.normalise import normalise
from qrmem.types import Document

_METRICS = ("em", "cover_em", "f1", "recall@2", "recall@5", "recall@10", "all@5")
UNION = "union"
"""Id of the context with all passages of a file or a corpus."""


@dataclass(frozen=True, slots=True)
class _Passage:
    """A paragraph with its title; equal ones are one document in all contexts."""

    title: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        return normalise("".join(self.sentences)).strip()

    @property
    def id(self) -> str:
        return passage_id(self.title, self.text)


@dataclass(frozen=True, slots=True)
class _Record:
    """A question with its own passages.

    Attributes:
        item: the item, without fields that depend on the order of passages.
        gold: indices in `passages`.
        facts: (title, index of the sentence).
    """

    item: Item
    passages: tuple[_Passage, ...]
    gold: tuple[int, ...]
    facts: tuple[tuple[str, int], ...] = ()


def passage_id(title: str, text: str) -> str:
    """Return the id of a passage: its title, and a digest of title and text."""
    digest = hashlib.sha256(f"{title}\0{text}".encode("utf-8", "replace")).hexdigest()[:8]
    return f"{title} #{digest}"


@dataset(
    "hotpotqa",
    "HotpotQA, distractor setting; official JSON or the hub's rows",
    files=("hotpot_dev_distractor_v1.json", "hotpotqa.json", "hotpotqa.jsonl"),
    where="https://hotpotqa.github.io (hotpot_dev_distractor_v1.json)",
    licence="CC BY-SA 4.0",
    metrics=(*_METRICS, "support_f1"),
    rule="hotpotqa",
    has_corpora=True,
)
def hotpotqa(path: Path, corpus: Corpus) -> Dataset:
    """Load HotpotQA's distractor setting: the official JSON, or the hub's rows."""
    return _dataset("hotpotqa", path, each(path, _hotpot), corpus)


@dataset(
    "2wikimultihopqa",
    "2WikiMultihopQA with evidences",
    files=("2wikimultihopqa.json", "dev.json"),
    where="https://github.com/Alab-NII/2wikimultihop (data_ids_april7.zip: dev.json)",
    licence="Apache-2.0",
    metrics=(*_METRICS, "support_f1"),
    rule="hotpotqa",
    has_corpora=True,
)
def two_wiki(path: Path, corpus: Corpus) -> Dataset:
    """Load 2WikiMultihopQA; it has HotpotQA's form, with evidence triples."""
    return _dataset("2wikimultihopqa", path, each(path, _hotpot), corpus)


@dataset(
    "musique",
    "MuSiQue, answerable or full",
    files=("musique_ans_v1.0_dev.jsonl", "musique_full_v1.0_dev.jsonl", "musique.json"),
    where="https://github.com/StonyBrookNLP/musique (musique_v1.0.zip)",
    licence="CC BY 4.0",
    metrics=_METRICS,
    has_corpora=True,
)
def musique(path: Path, corpus: Corpus) -> Dataset:
    """Load MuSiQue; in the full set half of the items are unanswerable from their passages."""
    return _dataset("musique", path, _musique_pairs(each(path, _musique)), corpus)


def _hotpot(record: Any) -> _Record:
    context, facts = record["context"], record["supporting_facts"]
    if isinstance(context, dict):  # the hub's columns
        context = list(zip(context["title"], context["sentences"], strict=True))
        facts = list(zip(facts["title"], facts["sent_id"], strict=True))
    # Official HotpotQA sentences include their leading space, those of 2Wiki do not.
    passages = tuple(_passage(title, _spaced(sentences)) for title, sentences in context)
    gold_titles = list(dict.fromkeys(str(title) for title, _ in facts))
    titles = [passage.title for passage in passages]
    gold = tuple(titles.index(title) for title in gold_titles if title in titles)
    item = Item(
        id=str(record.get("_id") or record["id"]),
        question=text_of(record, "question"),
        answers=(text_of(record, "answer"),),
        context=UNION,
        labels={name: str(record[name]) for name in ("type", "level") if record.get(name)},
        absent=len(gold_titles) - len(gold),
    )
    return _Record(item, passages, gold, tuple((str(title), int(n)) for title, n in facts))


def _passage(title: Any, sentences: Sequence[Any]) -> _Passage:
    if not all(isinstance(text, str) for text in (title, *sentences)):
        raise TypeError(f"title or text of the passage {title!r} is not a text")
    return _Passage(title, tuple(sentences))


def _spaced(sentences: Sequence[str]) -> tuple[str, ...]:
    if not sentences or not all(isinstance(sentence, str) for sentence in sentences):
        raise TypeError("a passage has no sentences")
    first, *rest = sentences
    return (first, *(s if s[:1].isspace() else f" {s}" for s in rest))


def _musique(record: Any) -> _Record:
    paragraphs = record["paragraphs"]
    hops = record.get("question_decomposition") or []
    item = Item(
        id=text_of(record, "id"),
        question=text_of(record, "question"),
        answers=(text_of(record, "answer"), *texts_of(record["answer_aliases"], "answer_aliases")),
        context=UNION,
        labels={"hops": str(len(hops))} if hops else {},
        is_answerable=bool(record.get("answerable", True)),
    )
    passages = tuple(_passage(p["title"], (p["paragraph_text"],)) for p in paragraphs)
    return _Record(item, passages, tuple(n for n, p in enumerate(paragraphs) if p["is_supporting"]))


def _musique_pairs(found: Sequence[_Record]) -> list[_Record]:
    """Give the unanswerable twin of an item its own id: in the full set they share one."""
    pairs_taken: set[str] = set()
    out = []
    for record in found:
        name = record.item.id
        if name in pairs_taken:
            name = f"{name}#unanswerable" if not record.item.is_answerable else f"{name}#2"
        pairs_taken.add(name)
        out.append(replace(record, item=replace(record.item, id=name)))
    return out


def _dataset(name: str, path: Path, found: Sequence[_Record], corpus: Corpus) -> Dataset:
    files = [source_file(path)]
    if corpus.path is not None:
        files.append(source_file(corpus.path))
        contexts, items = _over_corpus(found, _corpus(corpus.path), corpus.path)
    elif corpus.kind == "union":
        passages = dict.fromkeys(p for record in found for p in record.passages)
        contexts, items = _over_corpus(found, list(passages), path)
    else:
        contexts = {one.item.id: _context(one.item.id, one.passages) for one in found}
        items = [_item(one, one.item.id, [p.id for p in one.passages]) for one in found]
    return Dataset(name, tuple(items), contexts, tuple(files))


def _corpus(path: Path) -> list[_Passage]:
    """Read HippoRAG's corpora: a list of `{title, text}`, or `{title: [sentences]}`."""
    records = read_json(path)
    if not isinstance(records, dict):
        return each(path, lambda record: _passage(record["title"], (record["text"],)))
    passages = []
    for title, sentences in records.items():
        try:
            passages.append(_passage(title, _spaced(sentences)))
        except TypeError as exc:
            raise UsageError(f"{path}: record {title!r} is not of this form: {exc}") from exc
    return passages


def _over_corpus(
    found: Sequence[_Record], corpus: Sequence[_Passage], path: Path
) -> tuple[dict[str, Context], list[Item]]:
    by_id = {passage.id: passage for passage in corpus}
    by_title: dict[str, str] = {}
    for passage in corpus:
        by_title.setdefault(passage.title, passage.id)
    items = []
    for record in found:
        ids = [p.id if p.id in by_id else by_title.get(p.title, "") for p in record.passages]
        lacking = [record.passages[n].title for n in record.gold if not ids[n]]
        if lacking:
            raise UsageError(
                f"{path} lacks the passage {lacking[0]!r} that question {record.item.id} needs"
            )
        items.append(_item(record, UNION, ids))
    return {UNION: _context(UNION, list(by_id.values()))}, items


def _context(name: str, passages: Iterable[_Passage]) -> Context:
    passages_by_id = {p.id: p for p in passages if p.text}
    documents = tuple(Document(p.text, title=p.title, id=id) for id, p in passages_by_id.items())
    return Context(name, documents, {id: p.sentences for id, p in passages_by_id.items()})


def _item(record: _Record, context: str, ids: Sequence[str]) -> Item:
    of_title = {p.title: id for p, id in reversed(list(zip(record.passages, ids, strict=True)))}
    facts = [(of_title[title], n) for title, n in record.facts if of_title.get(title)]
    gold = tuple(ids[n] for n in record.gold)
    return replace(record.item, context=context, gold=gold, facts=tuple(facts))


# The places of supporting passages in a long text.


Place = Literal["head", "middle", "tail", "apart", "front", "mid", "rear"]
OPTIONS: Mapping[str, float] = {"front": 0, "mid": 0.5, "rear": 1}
"""Positions of the right option: first, middle (n // 2), last."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The arrangement of passages in a text.

    Attributes:
        place: all supporting passages at the head, in the middle or at the tail. `apart`: the
            first one begins the text, the others end it, with `distance` passages in between:
            [S1; S_non; S2]; the text grows with the distance. `front`, `mid` and `rear`: position
            of the right option, if the options are documents; the others keep their order.
        distance: number of passages in between, for `apart`.
        fill: least number of passages of the text, filled from other questions; not for `apart`.
    """

    place: Place
    distance: int = 0
    fill: int = 0


def arranged(dataset: Dataset, arrangement: Arrangement) -> Dataset:
    """Return the questions over arranged texts.

    Items without supporting passages, or with too few others for the distance, are left out. All
    arrangements of a sweep should use the remaining items.

    Raises:
        UsageError: no item remains.
    """
    if arrangement.place in OPTIONS:
        return _with_option_at(dataset, OPTIONS[arrangement.place])
    others = _pool(dataset)
    items, contexts = [], {}
    for item in dataset.items:
        documents = _ordered(item, dataset.contexts[item.context], others, arrangement)
        if documents:
            text = joined(documents)
            contexts[item.id] = Context(item.id, (Document(text, id=item.id),))
            items.append(replace(item, context=item.id, gold=(), facts=()))
    if not items:
        raise UsageError("no question has supporting passages to arrange; use --corpus own")
    return replace(dataset, items=tuple(items), contexts=contexts)


def _with_option_at(dataset: Dataset, share: float) -> Dataset:
    """Return the same items with the right option moved (Ada-LEval, section 4.5.2)."""
    items, contexts = [], {}
    for item in dataset.items:
        documents = list(dataset.contexts[item.context].documents)
        if item.choice is None or len(documents) != len(item.choices):
            raise UsageError("front, mid and rear are places of the right one of several documents")
        right = documents.pop(item.choice)
        at = min(int(share * len(item.choices)), len(documents))
        documents.insert(at, right)
        document_choices = zip(documents, item.choices, strict=True)
        moved = tuple(replace(document, title=name, id=name) for document, name in document_choices)
        contexts[item.context] = Context(item.context, moved)
        answer = (item.choices[at],)
        items.append(replace(item, choice=at, answers=answer, gold=answer))
    return replace(dataset, items=tuple(items), contexts=contexts)


def joined(documents: Sequence[Document]) -> str:
    """Join passages to one text: `Passage 1:`, title, text."""
    return "\n".join(
        f"Passage {n}:\n{document.title}\n{document.text}"
        for n, document in enumerate(documents, 1)
    )


def _pool(dataset: Dataset) -> Mapping[str, Document]:
    return {d.id or "": d for context in dataset.contexts.values() for d in context.documents}


def _ordered(
    item: Item, context: Context, others: Mapping[str, Document], arrangement: Arrangement
) -> list[Document]:
    documents_by_id = {document.id or "": document for document in context.documents}
    gold = [documents_by_id[id] for id in item.gold if id in documents_by_id]
    rest = [document for id, document in documents_by_id.items() if id not in item.gold]
    if not gold or (arrangement.place == "apart" and len(gold) < 2):
        return []
    is_apart = arrangement.place == "apart"
    count_between = arrangement.distance if is_apart else arrangement.fill - len(gold)
    if count_between > len(rest):
        # Passages of the next questions in the file, so that the text is always the same.
        rest += _more(
            others, {*documents_by_id}, count_between - len(rest), start=max(documents_by_id)
        )
    if is_apart:
        between = rest[: arrangement.distance]
        return [gold[0], *between, *gold[1:]] if len(between) == arrangement.distance else []
    at = {"head": 0, "middle": len(rest) // 2, "tail": len(rest)}[arrangement.place]
    return [*rest[:at], *gold, *rest[at:]]


def _more(
    others: Mapping[str, Document], taken: set[str], count: int, *, start: str
) -> list[Document]:
    ids = list(others)
    first = ids.index(start) + 1
    other_ids = (id for id in (*ids[first:], *ids[:first]) if id not in taken)
    return [others[id] for id, _ in zip(other_ids, range(count), strict=False)]
