"""What can be run: tasks with their data, systems with their parameters."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from qrmem.eval.presetting import preset_named, preset_names
from qrmem.eval.systems import SYSTEMS
from qrmem.eval.tasks import TASKS


def listing() -> Mapping[str, Any]:
    """Return everything that can be run, as plain values."""
    return {
        "tasks": {
            name: {
                "what": task.what,
                "files": list(task.files) or [f"a folder with {task.inside}"],
                "where": task.where,
                "licence": task.licence,
                "metrics": list(task.metrics),
            }
            for name, task in TASKS.items()
        },
        "presets": {
            name: {
                "title": preset.title,
                "rows": list(preset.rows),
                "tasks": [part.task for part in preset.parts],
                "systems": dict(preset.systems),
            }
            for name, preset in ((name, preset_named(name)) for name in preset_names())
        },
        "systems": {
            name: {
                "what": entry.what,
                "row": entry.row,
                "needs": sorted(entry.system.needs),
                "parameters": {f.name: getattr(entry.system, f.name) for f in fields(entry.system)},
            }
            for name, entry in SYSTEMS.items()
        },
    }


def listing_lines() -> list[str]:
    """Return the same for people."""
    found = listing()
    lines = ["tasks (--data names the file, or a folder that holds it)"]
    for name, task in found["tasks"].items():
        lines += [
            f"  {name:20} {task['what']}",
            f"  {'':20} {' or '.join(task['files'])}",
            f"  {'':20} {task['where']}; {task['licence']}",
            f"  {'':20} scored by {', '.join(task['metrics'])}",
        ]
    lines.append("presets (--data is a folder with what their tasks need)")
    for name, preset in found["presets"].items():
        lines.append(f"  {name:20} {preset['title']} ({', '.join(preset['rows'])})")
    lines.append("systems (with parameters: NAME:KEY=VALUE:KEY=VALUE)")
    for name, system in found["systems"].items():
        needs = f"; needs {' and '.join(system['needs'])}" if system["needs"] else ""
        chosen = " ".join(f"{key}={value}" for key, value in system["parameters"].items())
        lines += [f"  {name:20} {system['what']} ({system['row']}){needs}", f"  {'':20} {chosen}"]
    return lines
