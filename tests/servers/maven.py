"""Jars from Maven Central, fetched once into a folder outside of the checkout."""

import os
import shutil
import subprocess
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
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable(f"fetching {name} needs Maven (mvn)")
    command = [maven, "-q", "-B", "-f", str(pom), GOAL, f"-DoutputDirectory={folder}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unavailable(f"Maven could not fetch {name}: {done.stdout[-500:]}")
    mark.touch()
    return folder
