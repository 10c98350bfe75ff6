"""Size, packages and import time of the core install, compared with other packages.

    python -m benchmarks footprint [neo4j-graphrag lightrag-hku graphiti-core]

Each is installed into an empty environment of its own; byte-code, pip and setuptools are not
counted. Import time is the median of seven fresh interpreters, less that of an idle one.
"""

import argparse
import math
import statistics
import subprocess
import tempfile
import time
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.frame import Figure

ROOT = Path(__file__).parents[1]
OTHERS = {
    "neo4j-graphrag": "neo4j_graphrag",
    "lightrag-hku": "lightrag",
    "graphiti-core": "graphiti_core",
}
MOST_MB, MOST_PACKAGES, MOST_SECONDS = 180, 60, 0.5
RUNS = 7
NOT_COUNTED = ("pip", "setuptools", "pkg_resources", "_distutils_hack")


@dataclass(frozen=True)
class Footprint:
    """Cost of an install: megabytes (10^6 bytes), packages, seconds to import."""

    name: str
    megabytes: float
    packages: int
    seconds: float


def installed(name: str, source: str, module: str) -> Footprint:
    """Install a source into an empty environment and measure it."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-compile", source], check=True)
        site = next(Path(folder).glob("lib/python*/site-packages"))
        return Footprint(name, size(site), packages(site), import_seconds(python, module))


def size(site: Path) -> float:
    """Return the megabytes of all files except for byte-code and the installer's own."""
    counted = (
        path.stat().st_size
        for path in site.rglob("*")
        if path.is_file()
        and path.suffix != ".pyc"
        and not path.relative_to(site).parts[0].startswith(NOT_COUNTED)
    )
    return sum(counted) / 1e6


def packages(site: Path) -> int:
    """Return the number of distributions without the installer."""
    return sum(not d.name.startswith(NOT_COUNTED) for d in site.glob("*.dist-info"))


def import_seconds(python: Path, module: str) -> float:
    """Return the median time of an import minus that of an empty interpreter; nan if it fails."""
    if subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode:
        return math.nan

    def median(code: str) -> float:
        times = []
        for _ in range(RUNS + 1):
            began = time.perf_counter()
            subprocess.run([python, "-c", code], check=True, capture_output=True)
            times.append(time.perf_counter() - began)
        return statistics.median(times[1:])  # the first run writes byte-code

    return median(f"import {module}") - median("pass")


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("others", nargs="*", help="measured beside")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield the figures of this package, and of others."""
    ours = installed("qrmem", str(ROOT), "qrmem")
    yield Figure("qrmem: size", ours.megabytes, "MB", at_most=MOST_MB)
    yield Figure("qrmem: packages", ours.packages, "", at_most=MOST_PACKAGES)
    yield Figure("qrmem: import", ours.seconds, "s", at_most=MOST_SECONDS)
    for name in chosen.others:
        found = installed(name, name, OTHERS[name])
        yield Figure(f"{name}: size", found.megabytes, "MB")
        yield Figure(f"{name}: packages", found.packages)
        yield Figure(f"{name}: import", found.seconds, "s")
