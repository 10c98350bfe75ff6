"""Size, packages and import time of the core install, beside others measured the same way.

    python benchmarks/footprint.py [neo4j-graphrag lightrag-hku graphiti-core]

Each is installed into an empty environment of its own; byte-code, pip and setuptools are not
counted. Import time is the median of seven fresh interpreters, less that of an idle one.
"""

import math
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
RIVALS = {
    "neo4j-graphrag": "neo4j_graphrag",
    "lightrag-hku": "lightrag",
    "graphiti-core": "graphiti_core",
}
MOST_MB, MOST_PACKAGES, MOST_SECONDS = 180, 60, 0.5
RUNS = 7
NOT_COUNTED = ("pip", "setuptools", "pkg_resources", "_distutils_hack")


@dataclass(frozen=True)
class Footprint:
    """What an install takes: megabytes (10^6 bytes), packages, seconds to import."""

    name: str
    megabytes: float
    packages: int
    seconds: float


def measure(name: str, source: str, module: str) -> Footprint:
    """Install a source into an empty environment and look at it."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "-q", "--no-compile", source], check=True)
        site = next(Path(folder).glob("lib/python*/site-packages"))
        return Footprint(name, size(site), packages(site), import_seconds(python, module))


def size(site: Path) -> float:
    """Return megabytes of all files but byte-code and the installer's own."""
    counted = (
        path.stat().st_size
        for path in site.rglob("*")
        if path.is_file()
        and path.suffix != ".pyc"
        and not path.relative_to(site).parts[0].startswith(NOT_COUNTED)
    )
    return sum(counted) / 1e6


def packages(site: Path) -> int:
    """Return how many distributions are there beside the installer."""
    return sum(not d.name.startswith(NOT_COUNTED) for d in site.glob("*.dist-info"))


def import_seconds(python: Path, module: str) -> float:
    """Return the median time of an import, less an empty interpreter's; nan if it fails."""
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


def main(rivals: list[str]) -> None:
    """Print one line each, and the ratio of each rival to ours."""
    ours = measure("qrmem", str(ROOT), "qrmem")
    print(f"{'':16} {'MB':>7} {'packages':>9} {'import s':>9}   MB / ours")
    print(f"{ours.name:16} {ours.megabytes:7.0f} {ours.packages:9} {ours.seconds:9.2f}")
    print(f"{'bound':16} {MOST_MB:7} {MOST_PACKAGES:9} {MOST_SECONDS:9.2f}")
    for rival in rivals:
        found = measure(rival, rival, RIVALS[rival])
        ratio = found.megabytes / ours.megabytes
        print(
            f"{found.name:16} {found.megabytes:7.0f} {found.packages:9} {found.seconds:9.2f}"
            f"   {ratio:.2f}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
