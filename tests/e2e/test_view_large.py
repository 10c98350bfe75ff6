"""The page on a large memory: it asks for neighbourhoods, so every reply is of bounded size."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from e2e.test_view import browser, go
from viewing import viewed

from benchmarks.large_memory import BOOK, HUBS, fill
from qrmem.config import Settings
from qrmem.graphstore import open_store

pytestmark = pytest.mark.timeout(300)

__all__ = ["browser"]

NODES = 3000
MOST_BYTES = 64 * 1024
PARTS = (
    "",
    "documents",
    f"documents/{BOOK}",
    f"documents/{BOOK}/90",
    f"entities/{HUBS[0]}",
    "graph",
    f"graph/{HUBS[1]}/80",
    "conversations",
    "search/Nell Sayle",
    f"trees/ilm/{BOOK}",
    "trees",
    "trails",
    "trails/trail00007",
    "merges",
    "costs",
)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    at = tmp_path_factory.mktemp("large") / "memory.db"

    async def written() -> None:
        store = await open_store(str(at), Settings())
        try:
            await fill(store, "default", NODES)
        finally:
            await store.close()

    with ThreadPoolExecutor(1) as apart:  # the browser has a loop in this thread
        apart.submit(asyncio.run, written()).result()
    with viewed(at) as address:
        yield address


def test_no_reply_is_large_and_the_common_name_is_drawn(browser: Any, large: str) -> None:
    page = browser.new_page()
    sizes: dict[str, int] = {}

    def measured(answer: Any) -> None:
        if "/page/" not in answer.url:
            sizes[answer.url] = int(answer.headers.get("content-length", "0"))

    page.on("response", measured)
    page.goto(large)
    page.wait_for_selector("main h2")
    for part in PARTS:
        shown = go(page, f"#/{part}")
        assert "error" not in shown
        if part.startswith("entities/"):
            page.wait_for_selector(".graph[data-nodes]")
            assert int(page.get_attribute(".graph", "data-nodes")) == 21
            assert "320 segments" in shown
            page.click("text=Show more: 8 of 320 segments")
            page.wait_for_selector("text=Show more: 28 of 320 segments")
    assert len(sizes) > 12
    too_large = {url: size for url, size in sizes.items() if not 0 < size <= MOST_BYTES}
    assert not {url for url in too_large if not url.endswith("/")}, too_large
    go(page, "#/entities")
    assert max(sizes.values()) <= 128 * 1024
    page.close()
