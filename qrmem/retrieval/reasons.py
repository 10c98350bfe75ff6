"""How a hit was reached, in words."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from qrmem.retrieval.spotting import words_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from qrmem.retrieval.direct import Direct
    from qrmem.retrieval.exploring import Memory
    from qrmem.retrieval.features import Evidence
    from qrmem.retrieval.links import Reached

_WORDS = 6
_SENTENCE = 160
_STRONG = 0.5
"""Direct score from which no link is needed to say why."""


@dataclass(frozen=True, slots=True)
class _Step:
    """A part of a way in words, and the row of the segment that it quotes."""

    source: int
    told: str


async def reason(
    memory: "Memory", found: "Evidence | None", direct: "Direct", row: int
) -> tuple[str, list[int]]:
    """Return the way from the question to a segment, and the rows of the segments that it quotes.

    It tells names, sentences, words, meaning.
    """
    steps: list[_Step] = []
    if found is not None and direct.scores[row] < _STRONG:
        steps = await _way(memory, found, row)
    told = "; ".join([*(step.told for step in steps), *_itself(memory, direct, row)])
    return told or "near what the question names", [step.source for step in steps]


def _itself(memory: "Memory", direct: "Direct", row: int) -> list[str]:
    parts = []
    if direct.named[row] > 0:
        parts.append(f'the question names "{memory.columns.title(row)}"')
    asked = [term for term in direct.weights if term in direct.found]
    shared = [term for term in asked if _holds(direct.found[term].rows, row)]
    chosen = sorted(shared, key=lambda term: -direct.weights[term])[:_WORDS]
    spelled = [direct.spelled.get(term, term) for term in shared if term in chosen]
    if spelled:
        parts.append(f"has the question's words {', '.join(dict.fromkeys(spelled))}")
    if direct.dense[row] > 0:
        parts.append(f"near in meaning ({direct.dense[row]:.2f} of the nearest)")
    return parts


async def _way(memory: "Memory", found: "Evidence", row: int) -> list[_Step]:
    """Return the links that lead to a segment, from the question on."""
    second, first = _link(found.second, row), _link(found.first, row)
    if first is not None and (second is None or first[1] >= second[1]):
        return [await _step(memory, found.first, first[0])]
    if second is not None:
        source = int(found.second.links.sources[second[0]])
        before = _link(found.first, source)
        steps = [await _step(memory, found.first, before[0])] if before else []
        return [*steps, await _step(memory, found.second, second[0])]
    for scores, sources in (
        (found.residual.titles, found.residual.title_sources),
        (found.residual.scores, found.residual.sources),
    ):
        if scores[row] > 0:
            source = int(sources[row])
            title = _called(memory, source)
            told = f"shares names with {title} and has what the question still needs"
            return [_Step(source, told)]
    return []


def _link(reached: "Reached", row: int) -> tuple[int, float] | None:
    places = np.flatnonzero(reached.links.targets == row)
    if not places.size:
        return None
    place = int(places[np.argmax(reached.scores[places])])
    return place, float(reached.scores[place])


async def _step(memory: "Memory", reached: "Reached", place: int) -> _Step:
    links = reached.links
    source = int(links.sources[place])
    reading = (await memory.readings([source]))[source]
    number = int(links.sentences[place])
    sentence = " ".join(reading[number].text.split()) if number < len(reading) else ""
    name = _as_written(memory.graph.table.names[int(links.names[place])], sentence)
    told = _around(sentence, name)
    to = "its title" if links.entitled[place] else "named here too"
    return _Step(source, f'from {_called(memory, source)}, "{told}", over "{name}" ({to})')


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
        if " ".join(words.words[first : first + length]) == name:
            return sentence[words.starts[first] : words.ends[first + length - 1]]
    return name


def _called(memory: "Memory", row: int) -> str:
    """Return what a segment is called: its document's title, and its chapter or its number."""
    columns = memory.columns
    title = columns.title(row) or columns.catalog.document_ids[row]
    part = memory.part(row)
    index = int(columns.catalog.indexes[row])
    return f'"{title}"' + (f", {part}" if part else f" segment {index}" if index else "")


def _holds(rows: "NDArray[np.int64]", row: int) -> bool:
    place = int(np.searchsorted(rows, row))
    return place < rows.size and int(rows[place]) == row
