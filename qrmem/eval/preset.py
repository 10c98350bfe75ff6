"""Presets: the definition of a paper's table or figure, and the run of all its parts."""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from qrmem.config import Settings
from qrmem.errors import MissingError, UsageError
from qrmem.eval.datasets.data_files import data_file
from qrmem.eval.datasets.multihop import Arrangement
from qrmem.eval.harness import RunOptions, require, resolved
from qrmem.eval.items import Corpus
from qrmem.eval.registry import DATASETS, needs, parse
from qrmem.eval.run_folder import mark_preset
from qrmem.eval.running import PreparedRun, RunSpec, RunStats, prepared, run_made
from qrmem.graphstore.codec import from_plain
from qrmem.text.numbers import counted

Numbers = Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]
"""The paper's numbers: model to system's label to part to metric to number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetPart:
    """One task of a preset.

    Attributes:
        files: names of its file in the data folder, instead of the task's.
        systems: labels of its systems; empty for all systems of the preset.
        x: its position on the axis of a figure over parts.
    """

    name: str
    task: str
    metrics: tuple[str, ...]
    files: tuple[str, ...] = ()
    corpus: str = "own"
    strata: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    arrange: Arrangement | None = None
    systems: tuple[str, ...] = ()
    x: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A paper's table or figure.

    Attributes:
        readings: our decisions where the paper is silent or wrong.
        systems: label to the value for `--system`.
        size: number of items per part; all by default.
        first: draw the items from this many items at the start of each file; 0 uses all.
        labels: item labels to split results by, such as `difficulty`.
        plot: `axis` (`parts`, or a parameter of the systems; of several with a comma, the first
            that a system has), `label`, `metric` (several with a comma), `scale` (`log`, or
            nothing) and `bars`, the metrics that are drawn as bars; empty for none. Axis `cells`
            draws a heat map of each system, by the items' labels `x` and `y`. With
            `curves = "labels"` each label without its last word is a curve, else each part.
        figures: further figures with the axes of `plot`: name to `metric`.
        cases: labels `ours`, `theirs` and `compressed`, if single cases are shown.
        costs: costs per item in the table: `calls`, `all_calls`, `seconds`, `tokens_in`,
            `tokens_out`; of building `built_calls` and, for trees, `malformed`.
        quoted: labels of the paper's systems that are not run here.
        prompts: the set of prompts, if the user chooses none.
        by: the rows: `systems`, or also `parts` if there are many.
        tables: if a run covers several tables of the paper: name to the metrics of its table, and a
            label to split them by; empty for one table of everything.
    """

    name: str
    title: str
    readings: tuple[str, ...]
    systems: Mapping[str, str]
    parts: tuple[PresetPart, ...]
    window: int = 4096
    prompts: str = "paper"
    size: int | None = None
    first: int = 0
    force: bool = True
    labels: tuple[str, ...] = ()
    plot: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)
    cases: Mapping[str, str] = field(default_factory=dict)
    costs: tuple[str, ...] = ("calls", "all_calls")
    quoted: tuple[str, ...] = ()
    by: Literal["systems", "parts"] = "systems"
    tables: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    paper: Numbers = field(default_factory=dict)


def preset_names() -> list[str]:
    """Return the names of all presets."""
    file_names = (path.name for path in (files("qrmem.eval") / "presets").iterdir())
    return sorted(name.removesuffix(".toml") for name in file_names if name.endswith(".toml"))


def preset_named(name: str) -> Preset:
    """Return the preset of a name.

    Raises:
        UsageError: no preset has that name.
    """
    names = preset_names()
    if name not in names:
        alike = get_close_matches(name, names, 1)
        hint = f"did you mean {alike[0]}?" if alike else f"there are: {', '.join(names)}"
        raise UsageError(f"no preset is called {name!r}; {hint}")
    text = (files("qrmem.eval") / "presets" / f"{name}.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    return from_plain({"name": name, "parts": table.pop("part"), **table}, Preset)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A part or system of a preset that was not run, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PresetOptions:
    """The user's options for a whole preset; `None` uses the preset's value."""

    data: Path
    size: int | None = None
    first: int | None = None
    seed: int = 0
    window: int | None = None
    systems: tuple[str, ...] = ()


async def run_preset(
    preset: Preset,
    chosen: PresetOptions,
    out: Path,
    settings: Settings,
    options: RunOptions,
    told: Callable[[str], None],
) -> tuple[RunStats, list[Skipped]]:
    """Run all parts with data, with all systems that can run; return what was left out.

    Args:
        preset: the preset.
        chosen: the user's options.
        out: folder of the runs.
        settings: the settings.
        options: options of the runs.
        told: gets messages about started parts.

    Raises:
        UsageError: no part has data, or no system is left.
        MissingError: no system has what it needs.
    """
    skipped: list[Skipped] = []
    stats = RunStats()
    options = options.together(settings)
    for part, prepared_run in runs_of(preset, chosen, settings, skipped):
        mark_preset(out, preset.name, {one.what: one.why for one in skipped})
        told(f"{preset.name}: {part.name}, {counted(len(prepared_run.systems), 'systems')}")
        stats = stats.plus(await run_made(prepared_run, out / folder_of(part), options))
    mark_preset(out, preset.name, {one.what: one.why for one in skipped})
    return stats, skipped


def runs_of(
    preset: Preset, chosen: PresetOptions, settings: Settings, left: list[Skipped]
) -> Iterator[tuple[PresetPart, PreparedRun]]:
    """Yield all parts with data, with their runs, which are loaded one by one.

    All have `paper_exact`, and the paper's window and prompts.

    Args:
        preset: the preset.
        chosen: the user's options.
        settings: the settings.
        left: list to which left out parts and systems are appended.

    Raises:
        UsageError: no part has data, or no system is left.
        MissingError: no system has what it needs.
    """
    exact = settings.with_(
        paper_exact=True,
        prompts=settings.prompts or preset.prompts,
        window=chosen.window or preset.window,
    )
    settings = resolved(exact)
    systems = _runnable(preset, chosen, settings, left)
    lacking: list[Skipped] = []
    is_any = False
    for part in preset.parts:
        try:
            spec = _spec(part, preset, chosen, systems)
            if not spec.systems:
                continue
            prepared_run = prepared(spec, settings)
        except UsageError as exc:
            lacking.append(Skipped(part.name, str(exc)))
            continue
        is_any = True
        yield part, prepared_run
    if lacking and not is_any:
        more = f" (and {len(lacking) - 1} more parts)" if len(lacking) > 1 else ""
        first = lacking[0]
        raise UsageError(f"{preset.name} cannot be run: {first.what}: {first.why}{more}")
    left += lacking


def folder_of(part: PresetPart) -> str:
    """Return the name of a part's folder."""
    return re.sub(r"[^a-z0-9]+", "-", part.name.lower()).strip("-")


def _runnable(
    preset: Preset, chosen: PresetOptions, settings: Settings, left: list[Skipped]
) -> dict[str, str]:
    """Return the systems that can run; others lack a model, an embedder or an extra."""
    unknown = [label for label in chosen.systems if label not in preset.systems]
    if unknown:
        system_names = ", ".join(preset.systems)
        raise UsageError(f"{preset.name} has no system {unknown[0]!r}; it has {system_names}")
    systems: dict[str, str] = {}
    error: MissingError | None = None
    for label, word in preset.systems.items():
        if chosen.systems and label not in chosen.systems:
            continue
        try:
            require(needs(parse(word)), settings, label)
            systems[label] = word
        except MissingError as exc:
            left.append(Skipped(label, str(exc)))
            error = exc
    if not systems and error is not None:
        raise error
    return systems


def _spec(
    part: PresetPart, preset: Preset, chosen: PresetOptions, systems: dict[str, str]
) -> RunSpec:
    # Loaded here, so that a part without data is left out before it begins.
    task = DATASETS[part.task]
    path = data_file(
        part.task, replace(task, files=part.files) if part.files else task, chosen.data
    )
    labels = [label for label in systems if not part.systems or label in part.systems]
    return RunSpec(
        task=part.task,
        data=path,
        systems=tuple(systems[label] for label in labels),
        corpus=Corpus(part.corpus),
        size=preset.size if chosen.size is None else chosen.size,
        seed=chosen.seed,
        strata=part.strata if chosen.size is None else {},
        arrange=part.arrange,
        first=preset.first if chosen.first is None else chosen.first,
        force=preset.force,
        full_window=chosen.window or 0,
    )


# --- Deviations of the presets from their papers, each with its reason; every report prints them.
#
# `deviations.toml` has all of them: fixed ones, those that the settings of a run decide, and points
# that the papers leave open. A test compares it with the switches of the code.


Paper = Literal["QRMeM", "FragRel", "ILM-TR", "Ada-LEval"]


@dataclass(frozen=True, slots=True)
class Deviation:
    """One deviation from a paper.

    Attributes:
        what: description; `{}` is the value of this run.
        why: the reason.
        papers: papers whose presets it is about.
        touches: systems or tasks that it is about; all of these papers if empty.
        setting: the setting that decides it; "" if it always applies.
        value: value of the setting in the paper; any other value is a deviation.
    """

    what: str
    why: str
    papers: tuple[Paper, ...]
    touches: tuple[str, ...] = ()
    setting: str = ""
    value: Any = None


@cache
def all_deviations() -> tuple[Deviation, ...]:
    """Return the list, in its order."""
    text = (Path(__file__).parent / "deviations.toml").read_text(encoding="utf-8")
    rows = tomllib.loads(text)["deviation"]
    return tuple(from_plain(row, Deviation) for row in rows)


def deviations(preset: Preset, config: Mapping[str, Any]) -> Sequence[str]:
    """Return a run's deviations from the paper of a preset, one line each.

    Args:
        preset: the preset; its title begins with the paper's name.
        config: configuration of the run, with its settings.
    """
    settings = config["settings"]
    has = {word.partition(":")[0] for word in preset.systems.values()}
    has |= {part.task for part in preset.parts}
    return [
        f"- {one.what.format(settings.get(one.setting) or 'none')}: {one.why}"
        for one in all_deviations()
        if preset.title.startswith(one.papers)
        and (not one.touches or has & {*one.touches})
        and _holds(one, settings)
    ]


def _holds(one: Deviation, settings: Mapping[str, Any]) -> bool:
    if not one.setting or one.value is None:
        return True
    now = settings.get(one.setting)
    if isinstance(one.value, str):
        return not str(now).startswith(one.value) if one.value else True
    return bool(now != one.value)
