"""The Browser kit in the real Neo4j Browser: connect, style, guide, and every saved query."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from servers.neo4j_server import Server
from servers.openai_server import OpenAIServer, in_thread

import qrmem
from qrmem.graphstore.neo4j import browser_queries, browser_script

pytestmark = [pytest.mark.neo4j, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
KIT = ROOT / "docker" / "browser"
SAMPLE = ROOT / "qrmem" / "sample" / "harbour.md"
QUESTION = "What is the name of Martin Fenwick's pilot cutter?"
NS = "harbour"
DRAWN = {
    "The entities that occur most, and what relates them": "Nell",
    "The memory around an entity": "Nell",
    "The statements behind the relation of an entity that is stated most often": "Nell",
    "A document's chain of segments": "2 · ## Chapter 2",
    "Questions as a picture, with the entities and relations that they added": "Orla Quist",
    "A trail as a picture: its steps in order, what they read, dropped and expanded": "1. start",
    "Two trails of one question as a picture: what both read, and what only one": "entity-trial ·",
    "The tree of summaries as a picture: from its roots down to some segments": "1 · ",
    "Merged names as a picture": "Lucian (7)",
    "The same as a picture: two entities, and the statements between them": "Abel Crome",
}
"""Titles of the queries that draw a graph, with a caption that is in it."""
KEPT = {
    "The memory around an entity": "neo4j-entity",
    "A trail as a picture: its steps in order, what they read, dropped and expanded": "neo4j-trail",
    "Two trails of one question, side by side": "neo4j-two-trails",
    "Names that were merged into one entity, and why": "neo4j-merged",
    "The tree of summaries as a picture: from its roots down to some segments": "neo4j-tree",
    "Possible contradictions: what distant segments say of the same two entities": (
        "neo4j-contradictions"
    ),
}
"""Titles of the queries whose pictures are in the documents."""
TEXT_OF = "element => element.textContent"


@pytest.fixture
async def memory(neo4j: Server) -> Server:
    """Return a server with the sample read and one question asked twice."""
    if not neo4j.browser:
        pytest.skip("the server is not ours: only the local one is known to serve the Browser")
    neo4j.clear()
    async with qrmem.open(neo4j.uri, namespace=NS, settings=neo4j.settings) as opened:
        await opened.add(SAMPLE)
        await opened.build_tree()
        for strategy in ("entity-trial", "graph-expansion"):
            await opened.ask(QUESTION, strategy=strategy)
    with in_thread(OpenAIServer()) as server:  # rules make no questions
        settings = neo4j.settings.with_(model="gpt-5-mini", questions=5, base_url=server.url)
        async with qrmem.open(neo4j.uri, namespace=NS, settings=settings) as reading:
            await reading.add({"id": "letter", "text": "Orla Quist sold the Heron Key in Bergen."})
    return neo4j


@pytest.fixture
def kit() -> Iterator[str]:
    """Yield the address at which the style and the guide are served."""
    command = [sys.executable, "-u", str(KIT / "serve.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.stdout.readline().split()[1].rsplit("/", 1)[0]
        process.terminate()


class Browser:
    """A page with Neo4j Browser in it."""

    def __init__(self, page: Any) -> None:
        self.page = page

    async def connect(self, server: Server) -> None:
        """Open the page and log in."""
        await self.page.goto(server.browser)
        await self.page.locator("input[type=password]").first.fill(server.password)
        await self.page.keyboard.press("Enter")
        await self.page.get_by_text("You are connected as user").wait_for()

    async def run(self, text: str) -> Any:
        """Run a command or a query; return the frame that it opened."""
        before = await self.page.locator("[data-testid=frame]").count()
        await self.page.locator("[data-testid=activeEditor]").click()
        await self.page.keyboard.press("Control+A")
        await self.page.keyboard.insert_text(text)
        await self.page.keyboard.press("Escape")
        await self.page.keyboard.press("Control+Enter")
        await self.page.wait_for_function(
            "count => document.querySelectorAll('[data-testid=frame]').length > count", arg=before
        )
        return self.page.locator("[data-testid=frame]").first

    async def clear(self) -> None:
        """Close all frames."""
        await self.page.locator("[data-testid=activeEditor]").click()
        await self.page.keyboard.press("Control+A")
        await self.page.keyboard.insert_text(":clear")
        await self.page.keyboard.press("Control+Enter")
        await self.page.locator("[data-testid=frame]").first.wait_for(state="detached")


async def test_every_saved_query_draws_names_in_the_real_browser(memory: Server, kit: str) -> None:
    playwright = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium is installed")
    async with playwright.async_playwright() as started:
        opened = await started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = await opened.new_page(viewport={"width": 1500, "height": 1000})
        browser = Browser(page)
        await browser.connect(memory)
        await _style_and_guide(browser, kit)
        queries = browser_queries(NS)
        assert DRAWN.keys() < {query.title for query in queries}
        for line in browser_script(queries).splitlines()[:2]:
            await browser.run(line)
        for query in queries:
            print(query.title)  # where it fails, the last one is the one
            await browser.clear()
            await _see(await browser.run(query.text), query.title)
            await _keep_picture(page, query.title)
        await opened.close()


async def _style_and_guide(browser: Browser, kit: str) -> None:
    frame = await browser.run(f":style {kit}/qrmem.grass")
    await frame.get_by_text("node.Segment").wait_for()
    frame = await browser.run(f":play {kit}/guide.html")
    await frame.get_by_text("A memory of qrmem").first.wait_for()


async def _see(frame: Any, title: str) -> None:
    """See that a query shows something: names for graphs, rows for tables, and no warning."""
    if "not read completely" in title:
        await frame.get_by_text("no changes, no records").wait_for()
    elif title in DRAWN:
        nodes = frame.locator("svg g.node")
        await nodes.first.wait_for()
        captions = [_letters(await node.evaluate(TEXT_OF)) for node in await nodes.all()]
        assert all(captions), (title, captions)
        # A caption is cut into lines, and cut short where it is long.
        assert any(_letters(DRAWN[title]) in caption for caption in captions), (title, captions)
    else:
        await frame.locator("table tbody tr").first.wait_for()
    assert await frame.get_by_text("Warn", exact=True).count() == 0, title


def _letters(text: str) -> str:
    return "".join(text.split())


async def _keep_picture(page: Any, title: str) -> None:
    """Keep a picture for the documents: a graph on the full screen, a table as it stands."""
    folder = os.environ.get("QRMEM_PICTURES")
    if not folder or title not in KEPT:
        return
    clip = {"x": 70, "y": 130, "width": 1420, "height": 480}
    if title in DRAWN:
        clip = {"x": 55, "y": 68, "width": 1440, "height": 930}
        await page.get_by_title("Fullscreen", exact=True).first.click()
        await page.get_by_title("Collapse the node properties display").click()
        await page.wait_for_timeout(4000)
        await page.get_by_label("zoom-to-fit").click()
        await page.wait_for_timeout(2000)
    await page.screenshot(path=Path(folder) / f"{KEPT[title]}.png", clip=clip)
    if title in DRAWN:
        await page.get_by_title("Close fullscreen").click()


def test_the_guide_on_disk_is_that_of_the_saved_queries(tmp_path: Path) -> None:
    guide = (KIT / "guide.html").read_text(encoding="utf-8")
    copy = tmp_path / "make_guide.py"
    copy.write_text((KIT / "make_guide.py").read_text(encoding="utf-8"), encoding="utf-8")
    subprocess.run([sys.executable, str(copy)], check=True)
    assert (tmp_path / "guide.html").read_text(encoding="utf-8") == guide
