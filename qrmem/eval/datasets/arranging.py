"""Where the supporting passages stand in a long text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from qrmem.errors import UsageError
from qrmem.eval.records import Context, Dataset, Item
from qrmem.types import Document

Place = Literal["head", "middle", "tail", "apart", "front", "mid", "rear"]
OPTIONS: Mapping[str, float] = {"front": 0, "mid": 0.5, "rear": 1}
"""Places of the right option among all: first, in the middle (n // 2), last."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """How a text is put together.

    Attributes:
        place: all supporting passages at the head, in the middle or at the tail; `apart`: the
            first one begins the text, the others end it, and `distance` passages stand between:
            [S1; S_non; S2], so that the text grows with the distance. `front`, `mid` and `rear`:
            of the right option, where the options are documents; the others keep their order.
        distance: passages between; for `apart`.
        fill: passages of the whole text at least, made up of other questions'; not for `apart`.
    """

    place: Place
    distance: int = 0
    fill: int = 0


def arranged(dataset: Dataset, arrangement: Arrangement) -> Dataset:
    """Return the same questions over texts that are put together so.

    Items without supporting passages, or with too few other ones for the distance, are left out:
    what remains is what all arrangements of a sweep should be run over.

    Raises:
        UsageError: nothing remains.
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
        named = zip(documents, item.choices, strict=True)
        moved = tuple(replace(document, title=name, id=name) for document, name in named)
        contexts[item.context] = Context(item.context, moved)
        answer = (item.choices[at],)
        items.append(replace(item, choice=at, answers=answer, gold=answer))
    return replace(dataset, items=tuple(items), contexts=contexts)


def joined(documents: Sequence[Document]) -> str:
    """Return passages as one text: `Passage 1:`, title, text."""
    return "\n".join(
        f"Passage {n}:\n{document.title}\n{document.text}"
        for n, document in enumerate(documents, 1)
    )


def _pool(dataset: Dataset) -> Mapping[str, Document]:
    return {d.id or "": d for context in dataset.contexts.values() for d in context.documents}


def _ordered(
    item: Item, context: Context, others: Mapping[str, Document], arrangement: Arrangement
) -> list[Document]:
    own = {document.id or "": document for document in context.documents}
    gold = [own[id] for id in item.gold if id in own]
    rest = [document for id, document in own.items() if id not in item.gold]
    if not gold or (arrangement.place == "apart" and len(gold) < 2):
        return []
    is_apart = arrangement.place == "apart"
    wanted = arrangement.distance if is_apart else arrangement.fill - len(gold)
    if wanted > len(rest):
        # Passages of the next questions of the file, so that the same text comes every time.
        rest += _more(others, {*own}, wanted - len(rest), start=max(own))
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
    found = (id for id in (*ids[first:], *ids[:first]) if id not in taken)
    return [others[id] for id, _ in zip(found, range(count), strict=False)]
