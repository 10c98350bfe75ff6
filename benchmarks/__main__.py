"""Runs one benchmark: `python -m benchmarks NAME [--json] [--check] [options of the benchmark]`."""

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict

NAMES = (
    *(
        "adaleval",
        "build",
        "chat",
        "everyday",
        "faces",
        "footprint",
        "left_out",
        "model",
        "names",
    ),
    *("novel_answers", "novel_trees", "passages", "peers", "rare_words", "recall"),
    *("scale", "soak", "tree"),
)
"""The benchmarks; each is the module of this name (see `benchmarks.frame`)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a benchmark; return 1 if `--check` is set and a bound is missed."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = argparse.ArgumentParser(allow_abbrev=False, prog="python -m benchmarks")
    parser.add_argument("name", choices=NAMES, help="what to measure")
    name = parser.parse_args(given[:1]).name
    module = importlib.import_module(f"benchmarks.{name}")
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=module.__doc__,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bound is missed")
    if hasattr(module, "options"):
        module.options(parser)
    chosen = parser.parse_args(given[1:])
    figures = []
    for figure in module.measure(chosen):
        figures.append(figure)
        if not chosen.json:
            print(figure.line(), flush=True)
    if chosen.json:
        machine = {"cores": os.cpu_count(), "load": os.getloadavg()[0]}
        found = [asdict(figure) | {"met": figure.is_met} for figure in figures]
        head = {"benchmark": name, "python": platform.python_version(), "machine": machine}
        print(json.dumps(head | {"figures": found}, indent=1))
    return int(chosen.check and not all(figure.is_met for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
