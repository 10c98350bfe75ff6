"""Jars from Maven Central, fetched once into a folder outside of the checkout."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path


class Unavailable(Exception):
    """A real part cannot be had here; the message says why."""


GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


def jars(name: str, pom: Path) -> Path:
    """Return a folder with the jars of a project; `name` is that of the folder in the cache."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "qrmem" / name / "lib"
    mark = folder.parent / "complete"
    if mark.is_file():
        return folder
    # Two runs may fetch at once: each into a folder of its own, and the first one stays.
    folder.parent.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        _fetch(name, pom, own)
        if not mark.is_file():
            shutil.rmtree(folder, ignore_errors=True)
            own.rename(folder)
            mark.touch()
    finally:
        shutil.rmtree(own, ignore_errors=True)
    return folder


def _fetch(name: str, pom: Path, into: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable(f"fetching {name} needs Maven (mvn)")
    command = [maven, "-q", "-B", "-C", "-f", str(pom), GOAL, f"-DoutputDirectory={into}"]
    for _ in range(2):  # what a first try could not fetch is tried once more
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.returncode:
            return
    raise Unavailable(f"Maven could not fetch {name}: {done.stdout[-500:]}")
