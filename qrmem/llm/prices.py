"""What models cost: a small dated file, and a user's own over it."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Any

from qrmem.config import Settings
from qrmem.errors import UsageError
from qrmem.llm.budget import Price

_DATED = re.compile(r"-(20\d\d-?\d\d-?\d\d|latest)$")


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices by model name.

    Attributes:
        date: of the newest file that was read; shown with every sum.
    """

    date: str
    models: Mapping[str, Price]

    def of(self, model: str) -> Price | None:
        """Return a model's price, or `None` if it is not known; a date in the name is no matter."""
        return self.models.get(model) or self.models.get(_DATED.sub("", model))


def load_prices(file: Path | None = None) -> Prices:
    """Return the prices that the package knows, with those of a file over them.

    Raises:
        UsageError: the file cannot be read or holds something else.
    """
    shipped = (files("qrmem.llm") / "prices.toml").read_text(encoding="utf-8")
    known = _read(shipped, "the package's prices")
    if file is None:
        return known
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise UsageError(f"the prices in {file} cannot be read: {exc}") from exc
    given = _read(text, str(file))
    return Prices(given.date or known.date, {**known.models, **given.models})


def prices_of(settings: Settings) -> Prices:
    """Return the prices of the settings."""
    return load_prices(Path(settings.prices) if settings.prices else None)


def _read(text: str, source: str) -> Prices:
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise UsageError(f"{source} is not TOML: {exc}") from exc
    try:
        models = {name: _price(values) for name, values in found.get("models", {}).items()}
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise UsageError(f"{source}: each model needs input and output, as numbers: {exc}") from exc
    return Prices(str(found.get("date", "")), models)


def _price(values: Mapping[str, Any]) -> Price:
    if unknown := values.keys() - {"input", "output", "cached"}:
        raise ValueError(f"there is no {sorted(unknown)[0]!r}")
    cached = values.get("cached")
    return Price(
        input=_money(values["input"]),
        output=_money(values["output"]),
        cached=None if cached is None else _money(cached),
    )


def _money(value: Any) -> float:
    """Return a price; NaN, which is never more than a cap, is none."""
    money = float(value)
    if isinstance(value, bool) or not 0 <= money < inf:
        raise ValueError(f"a price cannot be {value}")
    return money


__all__ = ["Prices", "load_prices", "prices_of"]
