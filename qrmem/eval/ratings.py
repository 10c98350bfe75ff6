"""The ratings of a run's answers, one line each in a file of its folder."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from qrmem.eval.rundir import written

RATINGS = "ratings.jsonl"
LEAST, MOST, MOST_CHAT = 1, 10, 100
"""Of an answer; the paper's judge has 100 for a reply in a conversation."""


@dataclass(frozen=True, slots=True)
class Rating:
    """What a judge made of one answer.

    Attributes:
        rating: 1 to `most`; `None` where none could be read, or it was out of range.
        judge: the model that rated.
    """

    system: str
    item: str
    rating: int | None
    reason: str
    judge: str
    most: int = MOST

    @property
    def share(self) -> float | None:
        """The rating as a share of the best one."""
        return None if self.rating is None else self.rating / self.most


def ratings(folder: Path) -> dict[tuple[str, str], Rating]:
    """Return the ratings of a run by (system, item), the last of each.

    A line that cannot be read was being written when the judge was stopped: it is no rating.
    """
    found: dict[tuple[str, str], Rating] = {}
    for line in _lines(folder / RATINGS):
        try:
            one = Rating(**json.loads(line))
        except (ValueError, TypeError):
            continue
        found[one.system, one.item] = one
    return found


def add_rating(folder: Path, rating: Rating) -> None:
    """Write a rating down, on a line of its own whatever stands before it."""
    path = folder / RATINGS
    is_cut = path.exists() and not path.read_bytes().endswith(b"\n")
    with written(path), path.open("a", encoding="utf-8") as file:
        file.write(("\n" if is_cut else "") + json.dumps(asdict(rating), ensure_ascii=False) + "\n")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
