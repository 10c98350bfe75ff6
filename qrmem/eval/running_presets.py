"""One `qrmem eval run PRESET`: each part is a run of its own, in a folder of its own."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

from qrmem.config import Settings
from qrmem.errors import MissingError, QrmemError, UsageError
from qrmem.eval.bench import require, resolved
from qrmem.eval.presetting import Part, Preset
from qrmem.eval.rundir import mark_preset
from qrmem.eval.runner import Ran
from qrmem.eval.running import Means, Prepared, Wanted, prepared, run_made
from qrmem.eval.systems import parse
from qrmem.eval.tasks import Corpus, data_file, task_named
from qrmem.llm.caps import Amount, Caps


@dataclass(frozen=True, slots=True)
class Left:
    """What of a preset was not run, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What a user chose for a whole preset; `None` leaves it to the preset."""

    data: Path
    size: int | None = None
    seed: int = 0
    window: int | None = None
    systems: tuple[str, ...] = ()


async def run_preset(
    preset: Preset,
    chosen: Chosen,
    out: Path,
    settings: Settings,
    means: Means,
    told: Callable[[str], None],
) -> tuple[Ran, list[Left]]:
    """Run all parts whose data is there, with all systems that can run; return what was left.

    Args:
        told: hears, in words, what is begun and what is left out.

    Raises:
        UsageError: no part has its data, or nothing is left of the systems.
        MissingError: no system has what it needs.
    """
    settings = resolved(settings.with_(window=chosen.window or preset.window))
    systems, left = _runnable(preset, chosen, settings)
    done: list[Ran] = []
    error: QrmemError | None = None
    for part in preset.parts:
        try:
            wanted = _wanted(part, preset, chosen, systems)
            made = prepared(wanted, settings) if wanted.systems else None
        except UsageError as exc:
            left.append(Left(part.name, str(exc)))
            error = exc
            continue
        if made is None:
            continue
        mark_preset(out, preset.name)
        told(f"{preset.name}: {part.name}, {len(made.systems)} systems")
        done.append(await run_made(made, out / folder_of(part), means))
        means = replace(means, caps=rest_of(means.caps, done[-1].used))
    for one in left:
        told(f"not run: {one.what}: {one.why}")
    if not done and error is not None:
        raise error
    return reduce(Ran.plus, done, Ran()), left


def runs_of(
    preset: Preset, chosen: Chosen, settings: Settings
) -> tuple[list[Prepared], list[Left]]:
    """Return the runs of all parts whose data is there, and what is left out.

    Raises:
        UsageError: nothing is left of the systems.
        MissingError: no system has what it needs.
    """
    settings = resolved(settings.with_(window=chosen.window or preset.window))
    systems, left = _runnable(preset, chosen, settings)
    runs = []
    for part in preset.parts:
        try:
            wanted = _wanted(part, preset, chosen, systems)
            if wanted.systems:
                runs.append(prepared(wanted, settings))
        except UsageError as exc:
            left.append(Left(part.name, str(exc)))
    return runs, left


def rest_of(caps: Caps, used: Amount) -> Caps:
    """Return what is left of the caps, which hold for all parts together."""
    return replace(
        caps,
        calls=None if caps.calls is None else max(0, caps.calls - used.calls),
        tokens=None if caps.tokens is None else max(0, caps.tokens - used.tokens),
        cost=None if caps.cost is None else max(0.0, caps.cost - used.cost),
    )


def folder_of(part: Part) -> str:
    """Return the name of a part's folder."""
    return re.sub(r"[^a-z0-9]+", "-", part.name.lower()).strip("-")


def _runnable(
    preset: Preset, chosen: Chosen, settings: Settings
) -> tuple[dict[str, str], list[Left]]:
    """Return the systems that can run, and those that lack a model, an embedder or an extra."""
    unknown = [label for label in chosen.systems if label not in preset.systems]
    if unknown:
        known = ", ".join(preset.systems)
        raise UsageError(f"{preset.name} has no system {unknown[0]!r}; it has {known}")
    systems: dict[str, str] = {}
    left: list[Left] = []
    error: MissingError | None = None
    for label, word in preset.systems.items():
        if chosen.systems and label not in chosen.systems:
            continue
        try:
            require(parse(word).needs, settings, label)
            systems[label] = word
        except MissingError as exc:
            left.append(Left(label, str(exc)))
            error = exc
    if not systems and error is not None:
        raise error
    return systems, left


def _wanted(part: Part, preset: Preset, chosen: Chosen, systems: dict[str, str]) -> Wanted:
    # Asked for here, so that a part without data is left out before anything of it is begun.
    path = data_file(part.task, task_named(part.task), chosen.data)
    labels = [label for label in systems if not part.systems or label in part.systems]
    return Wanted(
        task=part.task,
        data=path,
        systems=tuple(systems[label] for label in labels),
        corpus=Corpus(part.corpus),
        size=preset.size if chosen.size is None else chosen.size,
        seed=chosen.seed,
        strata=part.strata if chosen.size is None else {},
        arrange=part.arrange,
        force=preset.force,
    )
