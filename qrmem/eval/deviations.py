"""Deviations of the presets from their papers, each with its reason; every report prints them.

`deviations.toml` has all of them: fixed ones, those that the settings of a run decide, and points
that the papers leave open. A test compares it with the switches of the code.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

Paper = Literal["QRMeM", "FragRel", "ILM-TR", "Ada-LEval"]


@dataclass(frozen=True, slots=True)
class Deviation:
    """One deviation from a paper.

    Attributes:
        what: description; `{}` is the value of this run.
        why: the reason.
        papers: papers whose presets it is about.
        setting: the setting that decides it; "" if it always applies.
        value: value of the setting in the paper; any other value is a deviation.
    """

    what: str
    why: str
    papers: tuple[Paper, ...]
    setting: str = ""
    value: Any = None


@cache
def all_deviations() -> tuple[Deviation, ...]:
    """Return the list, in its order."""
    text = (Path(__file__).parent / "deviations.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["deviation"]
    return tuple(Deviation(**{**row, "papers": tuple(row["papers"])}) for row in rows)


def deviations(title: str, config: Mapping[str, Any]) -> Sequence[str]:
    """Return a run's deviations from the paper of a preset, one line each.

    Args:
        title: title of the preset; it begins with the paper's name.
        config: configuration of the run, with its settings.
    """
    settings = config["settings"]
    return [
        f"- {one.what.format(settings.get(one.setting) or 'none')}: {one.why}"
        for one in all_deviations()
        if title.startswith(one.papers) and _holds(one, settings)
    ]


def _holds(one: Deviation, settings: Mapping[str, Any]) -> bool:
    if not one.setting or one.value is None:
        return True
    now = settings.get(one.setting)
    if isinstance(one.value, str):
        return not str(now).startswith(one.value) if one.value else True
    return bool(now != one.value)
