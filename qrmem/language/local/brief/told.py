"""The passages as what is told of whom: a passage tells of what its title names."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from qrmem.language.local.brief.nations import is_nationality
from qrmem.language.local.reading import flat, read
from qrmem.types import Passage

UPPER = r"[^\W\d_a-zß-öø-ÿ]"
_WORD = rf"{UPPER}[\w’'.&-]*"
_LINK = r"(?:de|van|von|der|den|la|le|du|da|di|del|della|dos|bin|ibn|al|el|zu|of|the|and the)"
NAME = re.compile(rf"{_WORD}(?:\s+(?:{_LINK}\s+){{0,2}}{_WORD})*")
_ASIDE = re.compile(r"\s*\([^)]*\)\s*")
_TOKEN = re.compile(r"[\w’'.&-]+|\S")
_NOUN_AND_NAME = re.compile(
    r"\s(?!(?:and|or|of|in|at|on|by|with|who|was|is|for|from|to|as|that|which|where|but|had|has)\b)"
    rf"[a-z-]+\s(?:and\s[a-z-]+\s)?{UPPER}"
)
_FARTHEST = 9
"""Words that may stand between a cue and the name it leads to."""


def bare(title: str) -> str:
    """Return a title without what tells it apart, "(film)"."""
    return _ASIDE.sub(" ", title).strip() or title


@dataclass(frozen=True, slots=True)
class Told:
    """A passage as a text about somebody or something.

    Attributes:
        about: its title without asides, else the first name in it.
    """

    passage: Passage
    about: str
    sentences: tuple[str, ...]

    @property
    def words(self) -> frozenset[str]:
        """The words of its name, case-folded."""
        return words_of(self.about)


@lru_cache(maxsize=4096)
def words_of(name: str) -> frozenset[str]:
    """Return the words of a name, case-folded, without asides."""
    return frozenset(re.findall(r"\w+", bare(name).casefold()))


def told(passages: Iterable[Passage]) -> list[Told]:
    """Return passages as what is told of whom."""
    pieces: dict[str, list[Passage]] = {}
    for passage in passages:
        pieces.setdefault(passage.segment.document_id, []).append(passage)
    return [_told(found) for found in pieces.values()]


def _told(pieces: Sequence[Passage]) -> Told:
    """Put what was read of one document together, in its order."""
    ordered = sorted(pieces, key=lambda passage: passage.segment.index)
    readings = [read(passage.segment.text) for passage in ordered]
    sentences = tuple(flat(s.text) for found in readings for s in found.sentences)
    about = bare(ordered[0].title)
    if not about:
        about = next((m.name for found in readings for m in found.mentions), "")
    return Told(ordered[0], about, sentences)


def of(name: str, among: Sequence[Told]) -> Told | None:
    """Return the passage about somebody, that of the name most alike; `None` if none is."""
    wanted = words_of(name)
    best, most = None, 0.49
    for one in among:
        own = one.words
        shared = wanted & own
        if not shared or (len(shared) < 2 and wanted != own):
            continue
        alike = len(shared) / len(wanted | own) + 0.2 * (wanted <= own or own <= wanted)
        if alike > most:
            best, most = one, alike
    return best


def name_behind(text: str, at: int) -> str:
    """Return the first name behind a place, over a few words that introduce it; "" for none."""
    for _ in range(_FARTHEST):
        token = _TOKEN.search(text, at)
        if token is None or (token[0] in {";", ":", "(", ")", "–", "—"}) or token[0] == ".":
            return ""
        name = NAME.match(text, token.start())
        if name and not _introduces(text, name):
            return _tidy(name[0])
        at = token.end()
    return ""


def _introduces(text: str, name: "re.Match[str]") -> bool:
    """Whether a name only says where the next one is from: "the French director …"."""
    behind = text[name.end() :]
    if is_nationality(name[0]):
        return bool(re.match(r"[\s-]+[\w-]", behind))
    return " " not in name[0] and bool(_NOUN_AND_NAME.match(behind))


def _tidy(name: str) -> str:
    name = re.sub(r"(?:’s|'s)\Z", "", name)
    return name.rstrip(".,") if not re.search(r"\b(?:Jr|Sr|[A-Z])\.\Z", name) else name
