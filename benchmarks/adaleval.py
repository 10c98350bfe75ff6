"""Memory and time to build Ada-LEval's cases from very large sources.

    python -m benchmarks adaleval [--megabytes 500 2000] [--cases 250 1000] [--folder /tmp]

BestAnswer is built of a generated dump of each size, in the form of Stack Exchange's `Posts.xml`;
TSort of generated books that give the number of cases of 128k tokens. Each set is built by a
process of its own, `qrmem eval build`; growth is the largest against the smallest. Sources and sets
are deleted. The largest need 3 GB of disk, and five minutes of one core.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.frame import Figure, note

MOST_MEGABYTES, MOST_SECONDS, MOST_GROWTH = 500, 180, 1.2
PARAGRAPHS_A_BOOK, PARAGRAPHS_A_CASE = 20_000, 128
WORDS = [
    f"{a}{b}{c}" for a in ("ka", "lo", "mi", "re", "tu") for b in "bdgknprst" for c in ("en", "or")
]
_MEASURED = """
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss)
sys.exit(code)
"""
TAGS = [f"tag{n}" for n in range(60)]


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of building a set: wall and processor seconds, peak memory in MB."""

    wall: float
    processor: float
    megabytes: float


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--megabytes", type=int, nargs="*", default=[500, 2000])
    parser.add_argument("--cases", type=int, nargs="*", default=[250, 1000])
    parser.add_argument("--folder", type=Path, help="with room for the largest")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield memory and time of every size."""
    found = []
    for size in chosen.megabytes:
        with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
            source = Path(folder) / "Posts.xml"
            write_dump(source, size * 1_000_000)
            note(f"a dump of {source.stat().st_size / 1e6:,.0f} MB is written")
            cost = built("bestanswer", source, "--length", "1k,4k", "--count", "1000")
        found.append(cost.megabytes)
        name = f"BestAnswer of a dump of {size:,} MB"
        yield Figure(f"{name}, memory", cost.megabytes, "MB", at_most=MOST_MEGABYTES)
        yield Figure(f"{name}, processor", cost.processor, "s")
        yield Figure(f"{name}, by the clock", cost.wall, "s")
    yield from _growth("memory, the largest dump against the smallest", found)
    found = []
    for cases in chosen.cases:
        with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
            source = Path(folder) / "books"
            write_books(source, cases)
            cost = built("tsort", source, "--length", "128k", "--count", str(cases))
        found.append(cost.megabytes)
        name = f"TSort, {cases:,} cases of 128k tokens"
        yield Figure(f"{name}, memory", cost.megabytes, "MB")
        yield Figure(f"{name}, processor", cost.processor, "s")
        yield Figure(f"{name}, by the clock", cost.wall, "s", at_most=MOST_SECONDS)
    yield from _growth("memory, most cases against fewest", found)


def _growth(name: str, found: list[float]) -> Iterator[Figure]:
    if len(found) > 1:
        yield Figure(name, found[-1] / found[0], at_most=MOST_GROWTH)


def built(kind: str, source: Path, *words: str) -> Cost:
    """Build a set beside its source in a separate process; the set stays there.

    Raises:
        SystemExit: it could not be built.
    """
    out = source.parent / f"{kind}-of-{source.name}"
    command = [sys.executable, "-m", "qrmem", "eval", "build", kind, *words]
    command += ["--quiet", "--source", str(source), "--out", str(out)]
    began = time.monotonic()
    # A process inherits the memory peak of its parent, so a small process starts it.
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, *command], stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        raise SystemExit(f"building {kind} ended with {done.returncode}")
    seconds, peak = map(float, done.stdout.split()[-2:])
    unit = 1e6 if sys.platform == "darwin" else 1e3
    return Cost(time.monotonic() - began, seconds, peak / unit)


def write_dump(path: Path, size: int) -> None:
    """Write a `Posts.xml` with at least so many bytes: threads of a question and four answers."""
    rng = random.Random(1)
    said = [f"The {' '.join(rng.choices(WORDS, k=12))} works." for _ in range(5000)]
    with path.open("w", encoding="utf-8") as file:
        file.write("<?xml version='1.0' encoding='utf-8'?>\n<posts>\n")
        n = 0
        while file.tell() < size:
            rows = []
            for _ in range(200):
                n += 5
                tags = "".join(f"&lt;{tag}&gt;" for tag in {*rng.choices(TAGS, k=3)})
                rows.append(
                    f'<row Id="{n}" PostTypeId="1" AcceptedAnswerId="{n + 3}" CreationDate="2020" '
                    f'ViewCount="{rng.randrange(10**6)}" Title="Question {n}" Tags="{tags}" '
                    f'Body="&lt;p&gt;{" ".join(rng.choices(said, k=4))}&lt;/p&gt;" />\n'
                )
                rows += [
                    f'<row Id="{n + k}" PostTypeId="2" ParentId="{n}" CreationDate="2020-01-0{k}" '
                    f'Body="&lt;p&gt;Reply {n + k}. {" ".join(rng.choices(said, k=9))}&lt;/p&gt;" '
                    "/>\n"
                    for k in range(1, 5)
                ]
            file.writelines(rows)
        file.write("</posts>\n")


def write_books(folder: Path, cases: int) -> None:
    """Write books that give at least so many cases of 128k tokens."""
    folder.mkdir()
    rng = random.Random(2)
    said = [f"Then {' '.join(rng.choices(WORDS, k=14))} came home." for _ in range(5000)]
    # No case begins in the last 2,500 or so paragraphs of a book: the rest is too short.
    books = -(-cases * PARAGRAPHS_A_CASE // (PARAGRAPHS_A_BOOK - 4000))
    for n in range(books):
        with (folder / f"book{n}.txt").open("w", encoding="utf-8") as file:
            for k in range(PARAGRAPHS_A_BOOK):
                file.write(f"On day {k} it began. {' '.join(rng.choices(said, k=3))}\n\n")
