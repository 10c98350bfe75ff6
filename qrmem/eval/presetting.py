"""Reads presets: which parts are run with which systems, and what the paper has for them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import files
from typing import Any, Literal

from qrmem.errors import UsageError
from qrmem.eval.arranging import Arrangement

Numbers = Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]
"""Model to system's label to part to metric to the paper's number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One task of a preset.

    Attributes:
        systems: labels; empty: all of the preset.
        x: where it stands on the axis of a figure over parts.
    """

    name: str
    task: str
    metrics: tuple[str, ...]
    corpus: str = "own"
    strata: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    arrange: Arrangement | None = None
    systems: tuple[str, ...] = ()
    x: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A paper's table or figure.

    Attributes:
        readings: what was decided where the paper is silent or errs.
        systems: label to how it is written for `--system`.
        size: items of each part; all, where nothing is said.
        labels: item labels by which the results are split, such as `difficulty`.
        plot: `axis` (`parts`, or a parameter of the systems), `label`, `metric` (several with a
            comma) and `scale` (`log`, or nothing); empty for none. With
            `curves = "labels"` each label without its last word is a curve, else each part.
        cases: `ours` and `theirs`, labels, where single cases are shown.
        costs: what of an item's cost the table has: `calls`, `tokens_in`, `tokens_out`, and
            `built_calls`, of everything that is built.
        quoted: labels of the paper's systems that are not run here.
        by: what has a row of its own: `systems`, or `parts` too, where there are many.
    """

    name: str
    title: str
    rows: tuple[str, ...]
    readings: tuple[str, ...]
    systems: Mapping[str, str]
    parts: tuple[Part, ...]
    window: int = 4096
    size: int | None = None
    force: bool = True
    labels: tuple[str, ...] = ()
    plot: Mapping[str, str] = field(default_factory=dict)
    cases: Mapping[str, str] = field(default_factory=dict)
    costs: tuple[str, ...] = ("calls",)
    quoted: tuple[str, ...] = ()
    by: Literal["systems", "parts"] = "systems"
    paper: Numbers = field(default_factory=dict)


def preset_names() -> list[str]:
    """Return the names of all presets."""
    found = (path.name for path in (files("qrmem.eval") / "presets").iterdir())
    return sorted(name.removesuffix(".toml") for name in found if name.endswith(".toml"))


def preset_named(name: str) -> Preset:
    """Return a preset.

    Raises:
        UsageError: there is none of that name.
    """
    names = preset_names()
    if name not in names:
        near = get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(names)}"
        raise UsageError(f"no preset is called {name!r}; {hint}")
    text = (files("qrmem.eval") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    return _preset(name, tomllib.loads(text))


def _preset(name: str, found: dict[str, Any]) -> Preset:
    parts = tuple(_part(part) for part in found.pop("part"))
    for plural in ("rows", "readings", "labels", "costs", "quoted"):
        if plural in found:
            found[plural] = tuple(found[plural])
    return Preset(name=name, parts=parts, **found)


def _part(found: dict[str, Any]) -> Part:
    if "arrange" in found:
        found["arrange"] = Arrangement(**found["arrange"])
    for plural in ("metrics", "systems"):
        found[plural] = tuple(found.get(plural, ()))
    return Part(**found)
