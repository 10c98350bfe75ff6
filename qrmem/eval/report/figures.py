"""A preset's figure as panels: what was measured here, and each of the paper's models beside."""

from collections.abc import Callable, Mapping, Sequence

from qrmem.eval.presetting import Part, Preset
from qrmem.eval.report.plots import NAMES, Axes, Curve, Panel, Point
from qrmem.eval.report.results import Results
from qrmem.eval.systems.catalogue import has_parameter, parameter

Value = Callable[[Part, str], Point | None]
"""From a part and a system's label to what was measured; its place is set later."""


def panels(preset: Preset, found: Sequence[tuple[Part, Results]]) -> tuple[list[Panel], Axes]:
    """Return what a figure shows: for each of its metrics ours, then the paper's models."""
    metrics = preset.plot["metric"].split(",")
    several = len(metrics) > 1
    made = []
    for metric in metrics:
        named = f"{NAMES.get(metric, metric)}, " if several else ""
        made.append(_panel(preset, named + _title(found, metric), _measured(preset, found, metric)))
        made += [
            _panel(preset, f"{named}paper: {model}", _printed(numbers, metric))
            for model, numbers in preset.paper.items()
        ]
    axes = Axes(
        x=preset.plot.get("label", preset.plot["axis"]),
        metric="" if several else metrics[0],
        is_log=preset.plot.get("scale") == "log",
    )
    return made, axes


def _title(found: Sequence[tuple[Part, Results]], metric: str) -> str:
    model = found[0][1].config["settings"]["model"] or "local reasoner"
    means = [r.mean(metric) for _, results in found for r in results.systems.values()]
    counts = sorted({mean.n for mean in means if mean is not None})
    told = "–".join(str(n) for n in dict.fromkeys((counts[0], counts[-1]))) if counts else "0"
    return f"here: {model}, n = {told}"


def _measured(preset: Preset, found: Sequence[tuple[Part, Results]], metric: str) -> Value:
    by_part = {part.name: results for part, results in found}

    def value(part: Part, label: str) -> Point | None:
        results = by_part.get(part.name)
        result = results.systems.get(preset.systems[label]) if results else None
        mean = result.mean(metric) if result else None
        return Point(0.0, mean.value, mean.low, mean.high) if mean else None

    return value


def _printed(numbers: Mapping[str, Mapping[str, Mapping[str, float]]], metric: str) -> Value:
    def value(part: Part, label: str) -> Point | None:
        found = numbers.get(label, {}).get(part.name, {}).get(metric)
        return None if found is None else Point(0.0, found)

    return value


def _panel(preset: Preset, title: str, value: Value) -> Panel:
    curves: dict[str, list[Point]] = {}
    levels: dict[str, list[Point]] = {}
    for part in preset.parts:
        for label in preset.systems:
            point = value(part, label)
            if point is None:
                continue
            name, x = _place(preset, part, label)
            if x is None:
                levels.setdefault(name, []).append(point)
            else:
                placed = Point(x, point.value, point.low, point.high)
                curves.setdefault(name, []).append(placed)
    return Panel(title, _sorted(curves), _sorted(levels))


def _place(preset: Preset, part: Part, label: str) -> tuple[str, float | None]:
    """Return the curve that a system is on, and its place there; `None` for a level."""
    axis, word = preset.plot["axis"], preset.systems[label]
    if axis == "parts":
        return f"{label}, {part.name.rsplit(' ', 1)[0]}", part.x or 0.0
    if not has_parameter(word, axis):
        return label, None
    # "B C500 8K" is a point of the curve "B C500" where the labels say so.
    name = label.rpartition(" ")[0] if preset.plot.get("curves") == "labels" else part.name
    return name, float(parameter(word, axis))


def _sorted(found: Mapping[str, Sequence[Point]]) -> tuple[Curve, ...]:
    return tuple(
        Curve(name, tuple(sorted(points, key=lambda p: p.x))) for name, points in found.items()
    )
