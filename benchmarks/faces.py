"""Time until a person sees something: the first help line, the first answer, the page.

    python -m benchmarks faces [--nodes 100000] [--kept large.db]

The page is opened in Chromium (with playwright) on a memory of so many segments and entities,
written straight through the store's contract (`benchmarks/large_memory.py`), whose three commonest
entities stand in a third of all segments each. Each part is timed from the address to the moment
when it is drawn; wall time, medians of three. Beside it stands what the server worked for it, in
processor time, which other work on the machine changes little.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.frame import Figure, note
from benchmarks.large_memory import BOOK, HUBS, USERS, fill, person
from qrmem.config import Settings
from qrmem.graphstore import open_store

SAMPLE = Path(__file__).parents[1] / "qrmem" / "sample" / "harbour.md"
QUESTION = "What did the key that Tam Garrick gave to Nell Sayle open?"
PARTS = {
    "the first page": ("", "main h3"),
    "a common entity": (f"entities/{HUBS[0]}", ".graph[data-nodes]"),
    "the graph of a common entity": (f"graph/{HUBS[0]}", ".graph[data-nodes]"),
    "a search": (f"search/{HUBS[0]}", ".items mark"),
    "a rare entity": (f"entities/{person(0)}", ".graph[data-nodes]"),
    "a segment in a long document": (f"documents/{BOOK}/40", ".target"),
    "a tree": (f"trees/ilm/{BOOK}", ".node"),
    "a trail": ("trails/trail00007", ".ribbon"),
    "the list of documents": ("documents", ".items a"),
    "the list of entities": ("entities", ".items a"),
    "the first document as a text": (f"documents/{BOOK}", ".passage"),
    "a found segment in its document, marked": (f"documents/{BOOK}/40/pier", ".target mark"),
    "the graph with most neighbours": (f"graph/{HUBS[0]}/300", ".graph[data-nodes]"),
    "the list of conversations": ("conversations", ".items a"),
    "a user's conversations": (f"conversations/u:{USERS[0]}", ".items a"),
    "a user's facts": (f"conversations/u:{USERS[0]}", ".fact"),
    "a conversation": (f"conversations/u:{USERS[0]}/s:week 0", ".turn"),
    "the list of trails": ("trails", ".items a"),
    "the list of trees": ("trees", ".items a"),
    "merged names": ("merges", ".items a"),
}
ROUNDS = 3
MOST_KB = 128


def options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this benchmark."""
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--kept", default="", help="file of the large memory, kept for later runs")


def measure(chosen: argparse.Namespace) -> Iterator[Figure]:
    """Yield the times on a terminal, then those on the page."""
    helps = [_first_line(["--help"]) for _ in range(7)]
    yield Figure("first help line", median(helps), "s", at_most=0.25)
    with tempfile.TemporaryDirectory() as folder:
        small = str(Path(folder) / "sample.db")
        began = time.perf_counter()
        _first_line(["add", str(SAMPLE), "--memory", small])
        first = _first_line(["ask", QUESTION, "--memory", small])
        yield Figure("a story read and asked: first answer", time.perf_counter() - began, "s")
        later = [first, *(_first_line(["ask", QUESTION, "--memory", small]) for _ in range(2))]
        yield Figure("first answer of a fresh process", median(later), "s")
        large = chosen.kept or str(Path(folder) / "large.db")
        if not Path(large).exists():
            note(f"writing {chosen.nodes} nodes")
            asyncio.run(_written(large, chosen.nodes))
        yield from _pages(large)


def _first_line(words: list[str]) -> float:
    environment = {**os.environ, "QRMEM_EMBEDDER": "none"}
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "qrmem", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        taken = time.perf_counter() - began
        process.stdout.read()
    return taken


async def _written(path: str, nodes: int) -> None:
    store = await open_store(path, Settings())
    try:
        await fill(store, "default", nodes)
    finally:
        await store.close()


def _pages(path: str) -> Iterator[Figure]:
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    command = [sys.executable, "-m", "qrmem", "view", "--no-browser", "--memory", path]
    began = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            yield Figure("`qrmem view` prints its address", time.perf_counter() - began, "s")
            with sync_playwright() as started:
                browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
                page = browser.new_page()
                sizes = [0]
                page.on("response", lambda answer: sizes.append(_size(answer)))
                page.goto(address)
                page.wait_for_selector("main h2")
                for name, (to, until) in PARTS.items():
                    shown = [_worked(process.pid, page, to, until) for _ in range(ROUNDS)]
                    times, worked = zip(*shown, strict=True)
                    yield Figure(f"page: {name}", median(times), "s")
                    yield Figure(f"page: {name}, the server's processor", median(worked), "s")
                yield Figure("page: largest reply", max(sizes) / 1000, "kB", at_most=MOST_KB)
                browser.close()
        finally:
            process.terminate()


def _size(answer: Any) -> int:
    return 0 if "/page/" in answer.url else int(answer.headers.get("content-length", "0"))


def _worked(server: int, page: Any, to: str, until: str) -> tuple[float, float]:
    """Return the time until a part was drawn, and the server's processor time for all of it."""
    before = _processor(server)
    taken, worked = _shown(page, to, until), -1.0
    while worked != (worked := _processor(server) - before):  # later parts count, too
        time.sleep(0.5)
    return taken, worked


def _processor(process: int) -> float:
    """Return the processor time of a process so far; 0 if the system does not report it."""
    stat = Path(f"/proc/{process}/stat")
    if not stat.exists():
        return 0.0
    user, system = stat.read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _shown(page: Any, to: str, until: str) -> float:
    page.evaluate("location.hash = '#/costs'")
    page.wait_for_selector("nav a[href='#/costs'][aria-current]")
    page.wait_for_selector("main:not([aria-busy])")
    began = time.perf_counter()
    page.evaluate("to => { location.hash = `#/${to}` }", to)
    page.wait_for_selector(until, timeout=300_000, state="attached")
    return time.perf_counter() - began
