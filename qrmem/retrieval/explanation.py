"""How a hit was reached, in words."""

from typing import TYPE_CHECKING

import numpy as np

from qrmem.text.names import words_of

if TYPE_CHECKING:
    from qrmem.retrieval.candidates import Neighborhood
    from qrmem.retrieval.exploring import Exploration
    from qrmem.retrieval.linking import Links, Texts

_WORDS = 6
_SENTENCE = 160
_STRONG = 0.5
"""Direct score from which no link is needed to say why."""

_Step = tuple[str, int]
"""A part of a way in words, and the row of the segment that it quotes."""


async def reason(
    near: "Neighborhood", found: "Exploration | None", texts: "Texts", row: int
) -> tuple[str, list[int]]:
    """Return the way from the question to a segment, and the rows of the segments that it quotes.

    It tells names, sentences, words, meaning.
    """
    steps: list[_Step] = []
    if found is not None and near.direct[row] < _STRONG:
        steps = await _way(found, texts, row)
    told = "; ".join([*(told for told, _ in steps), *_itself(near, row)])
    return told or "near what the question names", [source for _, source in steps]


def _itself(near: "Neighborhood", row: int) -> list[str]:
    question, parts = near.question, []
    if near.named[row] > 0:
        parts.append(f'the question names "{near.entries[row].title}"')
    own = set(near.entries[row].terms)
    shared = [term for term in question.weights if term in own]
    chosen = sorted(shared, key=lambda term: -question.weights[term])[:_WORDS]
    spelled = [question.spelled.get(term, term) for term in shared if term in chosen]
    if spelled:
        parts.append(f"has the question's words {', '.join(dict.fromkeys(spelled))}")
    if near.dense[row] > 0:
        parts.append(f"near in meaning ({near.dense[row]:.0%} of the nearest segment's cosine)")
    return parts


async def _way(found: "Exploration", texts: "Texts", row: int) -> list[_Step]:
    """Return the links that lead to a segment, from the question on."""
    second, first = _link(found.second, row), _link(found.first, row)
    if first is not None and (second is None or first[1] >= second[1]):
        return [await _step(found, texts, found.first, first[0])]
    if second is not None:
        source = int(found.second.sources[second[0]])
        before = _link(found.first, source)
        steps = [await _step(found, texts, found.first, before[0])] if before else []
        return [*steps, await _step(found, texts, found.second, second[0])]
    if row < found.uncovered.size and found.uncovered[row] > 0:
        source = int(found.asked_by[row])
        title = await _called(found.near, texts, source)
        return [(f"shares names with {title} and has what the question still needs", source)]
    return []


def _link(links: "Links", row: int) -> tuple[int, float] | None:
    places = np.flatnonzero(links.targets == row)
    if not places.size:
        return None
    place = int(places[np.argmax(links.scores[places])])
    return place, float(links.scores[place])


async def _step(found: "Exploration", texts: "Texts", links: "Links", place: int) -> _Step:
    source = int(links.sources[place])
    id_ = found.near.entries[source].id
    _, cut = (await texts.read([id_])).get(id_, (None, ()))
    number = int(links.sentences[place])
    sentence = " ".join(cut[number].text.split()) if number < len(cut) else ""
    name = _as_written(str(links.names[place]), sentence)
    told = _around(sentence, name)
    to = "its title" if links.entitled[place] else "named here too"
    title = await _called(found.near, texts, source)
    return f'from {title}, "{told}", over "{name}" ({to})', source


def _around(sentence: str, name: str) -> str:
    """Return a sentence, or of a long one the part with the name in it."""
    if len(sentence) <= _SENTENCE:
        return sentence
    start = max(0, sentence.find(name) + len(name) - _SENTENCE // 2)
    start = min(start, len(sentence) - _SENTENCE)
    told = sentence[start : start + _SENTENCE]
    if start:
        told = "… " + told.partition(" ")[2]
    return told if start + _SENTENCE == len(sentence) else told.rpartition(" ")[0] + " …"


def _as_written(name: str, sentence: str) -> str:
    """Return a name as a sentence writes it."""
    words = words_of(sentence)
    length = name.count(" ") + 1
    for first in range(len(words.words) - length + 1):
        if words.joined(first, first + length) == name:
            return sentence[words.starts[first] : words.ends[first + length - 1]]
    return name


async def _called(near: "Neighborhood", texts: "Texts", row: int) -> str:
    """Return what a segment is called: its document's title, and its chapter or its number."""
    entry = near.entries[row]
    segment, _ = (await texts.read([entry.id])).get(entry.id, (None, ()))
    part = segment.part if segment else ""
    more = f", {part}" if part else f" segment {entry.index}" if entry.index else ""
    return f'"{entry.title or entry.document_id}"{more}'
