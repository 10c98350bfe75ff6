"""The site is built from the pages without a warning, and draws its diagrams by itself."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from e2e.conftest import ROOT
from e2e.test_view import browser

__all__ = ["browser"]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built without a warning."""
    at = tmp_path_factory.mktemp("docs") / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir"]
    ran = subprocess.run(
        [*command, str(at)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return at


def test_the_site_describes_the_library(site: Path) -> None:
    page = (site / "reference" / "api" / "index.html").read_text()
    assert "Answer a question" in page
    assert "max_trials" in page


def test_the_index_says_how_to_install_and_shows_the_product(site: Path) -> None:
    page = (site / "index.html").read_text()
    assert "pipx install" in page
    (picture,) = re.findall(r'<img alt="[^"]+" src="([^"]+)"', page)
    assert (site / picture).is_file()
    for link in re.findall(r'<td><a href="([^":#]+)', page):
        assert (site / link).exists(), link


def test_choices_of_an_option_are_written_with_a_bar_alone(site: Path) -> None:
    commands = (site / "reference" / "cli" / "index.html").read_text()
    assert "PATH|URI" in commands.replace("&#124;", "|")
    for page in site.rglob("*.html"):
        shown = re.sub(
            r"<(script|pre)\b.*?</\1>|\\\(.*?\\\)", "", page.read_text(), flags=re.DOTALL
        )
        assert "\\|" not in shown, page


@pytest.mark.timeout(300)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_site_s_diagrams_are_drawn_without_a_request_to_elsewhere(
    site: Path, browser: Any, scheme: str
) -> None:
    diagrams = (site / "diagrams" / "index.html").read_text().count('<pre class="mermaid">')
    assert diagrams > 4
    with served_folder(site) as address:
        page = browser.new_page(color_scheme=scheme)
        elsewhere: list[str] = []

        def refuse(route: Any) -> None:
            elsewhere.append(route.request.url)
            route.abort()

        page.route(lambda url: not url.startswith((address, "data:")), refuse)
        page.set_default_timeout(120_000)
        page.goto(f"{address}/diagrams/")
        page.wait_for_selector("div.mermaid")  # the drawing stands in a closed shadow of it
        page.wait_for_function("!document.querySelector('pre.mermaid')")
        sizes = [box.bounding_box() for box in page.locator("div.mermaid").all()]
        assert len(sizes) == diagrams
        assert all(box is not None and box["height"] > 80 for box in sizes)
        assert "flowchart TD" not in page.inner_text("body")
        page.goto(address)
        page.wait_for_selector("h1")
        assert page.locator("script[src*=mermaid]").count() == 0, "other pages do not load it"
        assert elsewhere == []
        page.close()


@contextmanager
def served_folder(folder: Path) -> Iterator[str]:
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None: ...
