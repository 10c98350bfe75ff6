"""The page that shows a memory, in a real browser: what a person sees, types and may not reach."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from archives import write
from servers import answering
from servers.openai_server import Behaviour, OpenAIServer, in_thread
from viewing import viewed

from qrmem import sync

pytestmark = pytest.mark.timeout(300)

HOSTILE = "<img src=x onerror=alert(1)>"
TEXTS = [
    {
        "id": "note/1",
        "title": f"A note {HOSTILE}",
        "text": f"Ada Lovelace met Charles Babbage. {HOSTILE}",
    },
    {
        "id": "b",
        "title": "Engines",
        "text": "Charles Babbage built an engine in London. Mr. Babbage showed it to Ada Lovelace.",
    },
    {"id": "..", "title": "Above", "text": "The ferry is late."},
]
TURNS = (
    ("2026-04-02T18:03", f"My desk is 140 cm wide. {HOSTILE}"),
    ("2026-04-02T18:05", "My sister Ana lives in Porto."),
    ("2026-04-03T08:10", "Sorry, my desk is 160 cm wide, not 140."),
    ("2026-05-06T08:10", "Ana met Rui Costa in Lisbon."),
)
QUESTION = "Who built an engine in London?"
PLACES = ("documents", "trees/ilm")
PARTS = (
    "",
    "search/Charles Babbage",
    "ask",
    "ask/Who built an engine?",
    "documents",
    "documents/b",
    "documents/b/1/engine",
    "documents/..",
    "conversations",
    "conversations/u:Jan",
    "conversations/u:Jan/s:a%2Fdesk",
    "conversations/u:/s:",
    "entities",
    "entities/Ada Lovelace",
    "graph",
    "graph/Ana/20",
    "trees",
    "trees/ilm/b",
    "trails",
    "trails/{first}",
    "trails/{first}/{second}",
    "merges",
    "costs",
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("view") / "memory.db"
    with sync.open(str(at), embedder="none") as memory:
        memory.add(TEXTS)
        memory.build_tree()
        for when, said in TURNS:
            memory.add_turn("user", said, at=when, session="a/desk", user="Jan", speaker="Jan")
        memory.add_turn("assistant", "Good morning.", at="2026-05-01T09:00")
        for strategy in ("reflection", "graph-expansion"):
            memory.ask(QUESTION, strategy=strategy)
    return at


@pytest.fixture(scope="module")
def address(filled: Path) -> Iterator[str]:
    with viewed(filled) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if not found:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()


@contextmanager
def opened(browser: Any, address: str) -> Iterator[Any]:
    """Show the page; it may load nothing from elsewhere and no script may fail."""
    shown = browser.new_page()
    shown.set_default_timeout(90_000)
    asked: list[str] = []
    problems: list[str] = []
    shown.on("request", lambda request: asked.append(request.url))
    shown.on("pageerror", lambda error: problems.append(str(error)))
    shown.on("dialog", lambda dialog: problems.append(dialog.message))
    shown.on("console", lambda line: problems.extend([line.text] * ("Security" in line.text)))
    shown.goto(address)
    shown.wait_for_selector("main h2")
    yield shown
    base = address.partition("#")[0]
    assert [url for url in asked if not url.startswith((base, "data:"))] == []
    assert problems == []
    shown.close()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with opened(browser, address) as shown:
        yield shown


def _answer(request: Mapping[str, Any]) -> str:
    """Answer as the server does, with HTML in the words."""
    said = json.loads(answering.answer(request))
    return json.dumps(said | {"answer": f"Charles Babbage {HOSTILE}"} if "answer" in said else said)


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with in_thread(OpenAIServer(answer=_answer, behaviour=Behaviour(latency=0.3))) as running:
        yield running


@pytest.fixture(scope="module")
def changing(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the memory, for the page that changes it."""
    at = tmp_path_factory.mktemp("open") / "memory.db"
    shutil.copyfile(filled, at)
    return at


@pytest.fixture(scope="module")
def open_address(changing: Path, server: OpenAIServer) -> Iterator[str]:
    model = ("--model", "test", "--base-url", server.url)
    with viewed(changing, "--ask", "--write", *model) as address:
        yield address


@pytest.fixture
def open_page(browser: Any, open_address: str) -> Iterator[Any]:
    """The page where asking and writing are allowed."""
    with opened(browser, open_address) as shown:
        yield shown


def go(page: Any, to: str) -> str:
    if "{first}" in to:
        go(page, "#/trails")
        first, second = (
            one.get_attribute("value") for one in page.query_selector_all("main input")[:2]
        )
        to = to.format(first=first, second=second)
    page.evaluate("to => { location.hash = to }", to)
    page.wait_for_timeout(50)
    page.wait_for_selector("main:not([aria-busy]) >> css=h2, .error")
    page.wait_for_load_state("networkidle")
    return str(page.inner_text("main"))


def test_documents_show_their_segments_and_hostile_text_as_text(page: Any) -> None:
    assert HOSTILE in go(page, "#/documents")
    page.click("text=A note")
    page.wait_for_selector(".passage")
    assert HOSTILE in page.inner_text("main")
    assert page.query_selector("main img") is None


def test_a_short_list_on_the_first_page_leads_to_all(tmp_path: Path, browser: Any) -> None:
    at = tmp_path / "m.db"
    with sync.open(str(at), embedder="none") as memory:
        memory.add([{"id": f"d{n}", "text": f"Ada wrote letter {n}."} for n in range(8)])
    with viewed(at) as address, opened(browser, address) as page:
        go(page, "#/")
        page.click("text=all 8 documents")
        page.wait_for_selector("h2 >> text=Documents")


def test_a_document_opens_whose_id_means_the_folder_above(page: Any) -> None:
    go(page, "#/documents")
    page.click("text=Above")
    page.wait_for_selector(".passage")
    assert "The ferry is late." in page.inner_text("main .passage")


def test_words_are_found_and_stand_marked_in_their_document(page: Any) -> None:
    page.focus("#words")
    page.keyboard.type("Who built an engine?")
    page.keyboard.press("Enter")
    page.wait_for_selector("main mark")
    assert "Charles Babbage built an engine in London." in page.inner_text(
        "main blockquote >> nth=0"
    )
    assert page.locator("main blockquote >> nth=0").locator("mark").all_inner_texts() == [
        "built",
        "engine",
    ]
    page.click("main .items a >> nth=0")
    page.wait_for_selector(".passage.target mark")
    assert page.locator(".passage mark").all_inner_texts() == ["built", "engine"]
    assert "Marked: the words of Who built an engine?" in page.inner_text("main")
    page.click("text=Hide the marks")
    page.wait_for_selector(".passage.target >> css=mark", state="detached")


def test_an_entity_is_found_by_keyboard_and_drawn_with_its_neighbours(page: Any) -> None:
    page.focus("#words")
    page.keyboard.type("Charles Babbage")
    page.keyboard.press("Enter")
    page.click("main .notice a")
    page.wait_for_selector(".graph[data-nodes]")
    assert int(page.get_attribute(".graph", "data-nodes")) >= 2
    shown = page.inner_text("main")
    assert "Ada Lovelace" in shown
    assert "Charles Babbage built an engine in London." in shown


@pytest.mark.parametrize("place", ["search", "entities"])
def test_a_misspelled_name_leads_to_those_that_are_near(page: Any, place: str) -> None:
    go(page, f"#/{place}/Charles Babage")
    page.click("main p a >> text=Charles Babbage")
    page.wait_for_selector(".graph[data-nodes]")


def test_a_page_that_may_not_ask_or_write_says_so_and_cannot(page: Any, address: str) -> None:
    assert "qrmem view --ask" in go(page, "#/ask")
    assert "qrmem view --ask" in go(page, "#/")
    assert not page.is_visible("#find [name=ask]")
    assert "qrmem view --write" in go(page, "#/merges")
    assert page.query_selector("main button") is None
    base, _, token = address.partition("#token=")
    known = {"authorization": f"Bearer {token}"}
    for path, body in (
        ("ask", {"question": "Who?"}),
        ("merges", {"first": "Ada", "second": "Charles"}),
        ("facts/x:0/end", {"on": ""}),
    ):
        refused = httpx.post(f"{base}{path}", headers=known, json=body, timeout=60)
        assert refused.status_code in (404, 405), path


def test_an_answer_comes_step_by_step_with_its_trail(open_page: Any, changing: Path) -> None:
    page = open_page
    page.fill("#words", "Who built the engine?")
    page.click("#find [name=ask]")
    page.wait_for_selector(".answering .steps li")
    assert page.is_visible("text=Stop")  # the model is still asked
    page.wait_for_selector("main .cited")
    shown = page.inner_text("main")
    assert f"Charles Babbage {HOSTILE}" in shown
    assert page.query_selector("main img") is None
    assert "Step by step" in shown
    assert "Charles Babbage built an engine in London." in shown
    with sync.open(str(changing)) as memory:
        assert memory.trail().question == "Who built the engine?"
    page.click("main .cited a >> nth=0")
    page.wait_for_selector(".passage")


def test_a_question_is_asked_with_its_options_and_only_when_sent(
    open_page: Any, changing: Path, server: OpenAIServer
) -> None:
    page, before = open_page, server.stats.requests
    assert "Press Ask to send it." in go(page, "#/ask/Who met Ada?")
    page.wait_for_timeout(500)
    assert server.stats.requests == before
    page.click("text=Options")
    page.select_option("#strategy", "passages")
    page.focus("#question")
    page.keyboard.press("Enter")
    page.wait_for_selector("main .cited")
    with sync.open(str(changing)) as memory:
        assert memory.trail().question == "Who met Ada?"
        assert memory.trail().strategy == "passages"
    before = server.stats.requests
    page.reload()
    page.wait_for_selector("text=Press Ask to send it.")
    page.wait_for_timeout(500)
    assert server.stats.requests == before


def test_errors_about_a_question_are_reported(open_page: Any) -> None:
    go(open_page, "#/ask")
    open_page.fill("#question", "Who met Ada Lovelace?")
    open_page.click("text=Options")
    open_page.fill("#as-of", "yesterday")
    open_page.click("main button >> text=Ask")
    open_page.wait_for_selector("[role=alert] >> text=yesterday")


def test_a_question_that_is_stopped_costs_no_more(
    open_page: Any, changing: Path, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "Why was the ferry late that day?"
    monkeypatch.setattr(server.behaviour, "latency", 3.0)
    go(open_page, "#/ask")
    open_page.fill("#question", question)
    open_page.keyboard.press("Enter")
    open_page.click(".answering >> text=Stop")
    open_page.wait_for_selector("text=Stopped.")
    open_page.wait_for_timeout(5000)
    with sync.open(str(changing)) as memory:
        assert question not in [trail.question for trail in memory.trails(100)]


def test_a_conversation_shows_what_was_said_and_stated(page: Any) -> None:
    assert "turn-" not in go(page, "#/documents")
    assert "No user named" in go(page, "#/conversations")
    page.click("main >> text=a/desk")
    page.wait_for_selector(".fact")
    turns = page.locator(".turn").all_inner_texts()
    assert len(turns) == 4
    assert HOSTILE in turns[0]
    assert "Apr 2, 2026" in turns[0]
    assert "Apr 3, 2026" in turns[2]
    facts = page.inner_text("main section >> nth=1")
    assert "My sister Ana lives in Porto." in facts
    assert "said Apr 2, 2026" in facts
    go(page, "#/conversations/u:/s:")
    assert "Good morning." in page.inner_text(".turn")


def test_a_relation_says_when_it_was_said_and_leads_there(page: Any) -> None:
    assert "My sister Ana lives in Porto." in go(page, "#/entities/Ana")
    page.click("text=said Apr 2, 2026 >> nth=0")
    page.wait_for_selector(".passage")
    assert "My sister Ana lives in Porto." in page.inner_text(".passage")


def test_a_graph_has_one_edge_a_pair_and_shows_what_held_on_a_day(page: Any) -> None:
    assert "What was said" not in go(page, "#/graph/Ana")
    page.wait_for_selector(".graph[data-nodes]")
    box = page.locator(".graph")
    edges = page.locator("main .items > div").all_inner_texts()
    assert len({frozenset(one.split("\n")[0].split(" – ")) for one in edges}) == len(edges)
    assert int(box.get_attribute("data-edges") or 0) == len(edges) >= 2
    page.focus("#as-of-day")
    page.keyboard.press("Home")
    assert page.inner_text(".time output") == "Apr 2, 2026"
    then = page.locator("main .items > div:visible").all_inner_texts()
    assert 0 < len(then) < len(edges)
    assert int(box.get_attribute("data-edges") or 0) == len(then)
    assert any("Porto" in one for one in then)
    assert not any("Rui" in one for one in then)
    page.keyboard.press("End")
    assert page.inner_text(".time output") == "all times"
    assert int(box.get_attribute("data-edges") or 0) == len(edges)


def test_a_graph_is_zoomed_and_leads_to_entities(page: Any) -> None:
    go(page, "#/graph")
    page.wait_for_selector(".graph[data-nodes]")
    seen = [page.locator(".graph").screenshot()]
    for name in ("Zoom out", "Zoom in", "Zoom out", "Show the whole graph"):
        page.click(f"button[aria-label='{name}']")
        page.wait_for_timeout(300)  # it is drawn with the next frame
        seen.append(page.locator(".graph").screenshot())
    assert all(before != after for before, after in pairwise(seen))
    page.click("main .items a >> nth=0")
    page.wait_for_selector("text=Names in the text")


@pytest.mark.parametrize("name", ["Ada Lovelace", "London"])
def test_a_graph_that_arrives_after_the_reader_moved_on_is_not_drawn(page: Any, name: str) -> None:
    held: list[Any] = []
    page.route(re.compile(r"/graph\?"), lambda route: held.append(route))
    page.evaluate("name => { location.hash = `#/entities/${name}`; }", name)
    page.wait_for_selector("text=drawing …")
    while not held:
        page.wait_for_timeout(20)
    page.evaluate("() => { location.hash = '#/trees'; }")
    page.wait_for_selector("main:not([aria-busy]) h2 >> text=Trees")
    with page.expect_response(re.compile(r"/graph\?")):
        held[0].continue_()
    page.wait_for_timeout(300)
    page.unroute_all()


def test_graphs_of_one_and_two_nodes_are_drawn_and_go_with_their_page(page: Any) -> None:
    go(page, "#/trees")
    page.evaluate("""async () => {
        const { draw, plot } = await import("/page/graph.js");
        const nodes = [..."ab"].map((id) => ({ id, label: id, kind: "entity", tone: 0, size: 20 }));
        for (const some of [nodes.slice(1), nodes]) for (const round of ["", "b"])
          document.getElementById("main").append(draw(some, [], { round }));
        window.boxes = [...document.querySelectorAll(".graph")];
        plot(document.getElementById("main"));
    }""")
    boxes = page.locator(".graph")
    drawn = [box.get_attribute("data-nodes") for box in boxes.all()]
    assert drawn == ["1", "1", "2", "2"]
    go(page, "#/trails")
    assert page.evaluate("boxes.every((box) => !box._cyreg)"), "they were destroyed"


def test_two_trails_stand_beside_each_other(page: Any) -> None:
    go(page, "#/trails")
    for box in page.query_selector_all("main input[type=checkbox]"):
        box.check()
    page.click("text=Compare")
    page.wait_for_selector(".steps >> nth=1")
    assert "reflection" in page.inner_text("main")
    assert "graph-expansion" in page.inner_text("main")
    assert "Both read" in page.inner_text("main")
    page.click("text=segments read")
    page.wait_for_selector("details[open] blockquote.read")


def test_a_trail_shows_its_way_through_the_text(page: Any) -> None:
    assert "built-in rules" in go(page, "#/trails/{first}")
    shown = page.get_attribute(".ribbon >> nth=0", "aria-label")
    assert shown.startswith("Read: segments 1.")
    page.click("main details summary >> nth=0")
    assert "score" in page.inner_text("main details[open] >> nth=0")


def test_a_tree_opens_from_its_root_down_to_the_text(page: Any) -> None:
    assert "summaries and surprises" in go(page, "#/trees")
    page.click("text='b'")
    page.wait_for_selector(".node")
    page.click(".node summary >> nth=0")
    page.wait_for_selector(".below .node")
    while page.query_selector(".below blockquote") is None:
        page.click(".below details:not([open]) > summary >> nth=0")
        page.wait_for_timeout(100)
    assert "Charles Babbage built an engine in London." in page.inner_text(".below blockquote")


def test_all_parts_are_reached_by_the_keyboard_alone(page: Any) -> None:
    def press(key: str, until: str) -> None:
        for _ in range(60):
            if page.evaluate(f"document.activeElement?.matches({until!r})"):
                return
            page.keyboard.press(key)
        raise AssertionError(f"{until} is not reached")

    for name in ("documents", "entities", "trees", "trails", "merges", "costs"):
        press("Tab", f"nav a[href='#/{name}']")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"nav a[href='#/{name}'][aria-current]")
        page.wait_for_selector("main:not([aria-busy]) h2")
        page.keyboard.press("Shift+Tab")
        page.evaluate("document.querySelector('.skip').focus()")
    go(page, "#/trails")
    for _ in range(2):
        press("Tab", "main input:not(:checked)")
        page.keyboard.press("Space")
    press("Shift+Tab", "main button")
    page.keyboard.press("Enter")
    page.wait_for_selector("main h3 >> text=Through the text >> nth=1")
    press("Tab", "main summary")
    page.keyboard.press("Enter")
    assert page.query_selector("main details[open]")


def test_a_merge_is_declared_right_undone_and_made_again_by_buttons(
    open_page: Any, changing: Path
) -> None:
    page = open_page
    shown = go(page, "#/merges")
    assert "Mr. Babbage" in shown
    page.click("main .row:has-text('Mr. Babbage') >> text=Right")
    page.wait_for_selector("main .row:has-text('Mr. Babbage') >> text=your decision")
    with sync.open(str(changing)) as memory:
        assert {one.name: one.reason for one in memory.merges()}["Mr. Babbage"] == "user"
    page.click("text=Keep “Mr. Babbage” apart")
    page.wait_for_selector("text=Mr. Babbage →", state="detached")
    with sync.open(str(changing)) as memory:
        assert "Mr. Babbage" not in [merge.name for merge in memory.merges()]
    page.click("text=Merge them again")
    page.wait_for_selector("text=Mr. Babbage →")
    with sync.open(str(changing)) as memory:
        merged = {merge.name: merge.reason for merge in memory.merges()}
    assert merged["Mr. Babbage"] == "user"


def test_merged_names_say_by_which_rule_and_are_filtered(page: Any) -> None:
    assert "the same last name" in go(page, "#/merges")
    page.fill("#filter", "Zeus")
    page.wait_for_selector("text=No merged name has these words.")
    page.fill("#filter", "mr. babb")
    page.wait_for_selector("main .row >> text=Mr. Babbage")


def _facts(at: Path) -> list[tuple[str, str, str]]:
    """Return what is stated of a user, with from when and until when, in order."""
    with sync.open(str(at)) as memory:
        found = memory.facts(user="Jan", superseded=True)
        return sorted((one.description, one.valid_from, one.valid_until) for one in found)


@pytest.mark.parametrize("place", ["conversations/u:Jan", "entities/Rui Costa"])
def test_a_fact_is_changed_ended_deleted_and_restored_on_the_page(
    open_page: Any, changing: Path, place: str
) -> None:
    page, said = open_page, "Ana met Rui Costa in Lisbon."
    before = _facts(changing)
    assert (said, "", "") in before
    go(page, f"#/{place}")
    box = page.locator(".fact", has_text="Lisbon").first
    box.locator("summary").click()
    box.locator("textarea").fill(f"Ana saw Rui Costa in Lisbon. {HOSTILE}")
    box.locator("[aria-label='Holds from']").fill("next year")
    box.locator("text=Save").click()
    box.locator("[role=alert] >> text=next year").wait_for()
    box.locator("[aria-label='Holds from']").fill("2026-05")
    page.keyboard.press("Enter")
    page.wait_for_selector(".fact >> text=from 2026-05")
    changed = f"Ana saw Rui Costa in Lisbon. {HOSTILE}"
    assert page.query_selector("main img") is None
    assert (changed, "2026-05", "") in _facts(changing)
    box.locator("text=Undo all edits").click()
    page.wait_for_selector(".fact >> text=from 2026-05", state="detached")
    assert _facts(changing) == before
    box.locator("summary").click()
    box.locator("text=It is no longer true").click()
    page.wait_for_selector(".fact >> text=until 2")
    assert [text for text, _, until in _facts(changing) if until] == [said]
    box.locator("summary").click()
    box.locator("text=Delete").click()
    page.wait_for_selector(".fact >> text=deleted")
    assert len(_facts(changing)) == len(before) - 1
    page.locator(".fact", has_text="deleted").locator("text=Undo all edits").click()
    page.wait_for_selector(".fact >> text=deleted", state="detached")
    assert _facts(changing) == before


def test_a_miss_is_reported_and_a_word_without_an_entity_is_searched_for(page: Any) -> None:
    assert "may be a miss" in go(
        page, "#/search/Which zebra crossed seven frozen rivers in London?"
    )
    assert "may be a miss" not in go(page, "#/search/Who built an engine in London?")
    found = go(page, "#/search/xyzzyplugh")
    assert "nothing found" in found
    assert "the best first" not in found
    assert "no entity is called 'Zeus'" in go(page, "#/entities/Zeus%7C")
    go(page, "#/entities/Zeus")
    page.click("text=Search the texts for “Zeus”")
    page.wait_for_selector("h2 >> text=Zeus")


def test_a_graph_has_the_types_that_the_entities_have(page: Any) -> None:
    page.evaluate("location.hash = '#/entities/Charles Babbage'")
    page.wait_for_selector(".graph[data-nodes]")
    assert "person" in page.inner_text("main .about")
    assert "person" in page.inner_text("main .legend")


def test_a_segment_that_begins_within_a_line_is_running_text(page: Any) -> None:
    shown = page.evaluate("""async () => {
        const { segmentBox } = await import("/page/dom.js");
        const line = "and went along the pier until it was dark and the rain had begun";
        const one = { document_id: "turn-00000012", index: 0, start: 9, end: 99,
            text: `She rose\n${line}\n${line}.` };
        return [segmentBox(one), segmentBox({ ...one, start: 0 })].map((box) => box.textContent);
    }""")
    assert "She rose and went" in shown[0]
    assert "She rose\nand went" in shown[1]
    assert all("turn 12, segment 1" in text for text in shown)


def test_absent_things_are_reported(page: Any) -> None:
    assert "no entity is called" in go(page, "#/entities/Zeus")
    assert "no document" in go(page, "#/documents/other")


@pytest.mark.parametrize("typed", ["entities/100%", "constructor", "__proto__/x"])
def test_an_address_that_a_person_typed_wrong_breaks_nothing(page: Any, typed: str) -> None:
    faults: list[Any] = []
    page.on("pageerror", lambda fault: faults.append(fault))
    page.evaluate("typed => { location.hash = `#/${typed}`; }", typed)
    wanted = "100%" if "%" in typed else "default"
    page.locator("main").filter(has_text=wanted).wait_for()
    page.wait_for_timeout(200)
    assert not faults


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(open_page: Any, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = open_page
    page.emulate_media(color_scheme=scheme)
    for part in PARTS:
        go(page, f"#/{part}")
        found = Axe().run(page, options={"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]})
        assert found.violations_count == 0, found.generate_report()


def test_it_fits_a_narrow_screen(open_page: Any) -> None:
    page = open_page
    page.set_viewport_size({"width": 360, "height": 640})
    for part in PARTS:
        go(page, f"#/{part}")
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360, part


def test_without_the_token_nothing_of_the_memory_is_shown(address: str) -> None:
    base, _, token = address.partition("#token=")
    assert httpx.get(base, timeout=60).status_code == 200
    for path in ("status", "documents", "merges", "openapi.json", "docs", "page/../status"):
        assert httpx.get(f"{base}{path}", timeout=60).status_code in (401, 404), path
    known = {"authorization": f"Bearer {token}"}
    answer = httpx.get(f"{base}status", headers=known, timeout=60)
    assert answer.status_code == 200
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert (
        httpx.get(
            f"{base}status", headers={**known, "host": "evil.example"}, timeout=60
        ).status_code
        == 403
    )
    assert (
        httpx.post(f"{base}documents", headers=known, json={"text": "x"}, timeout=60).status_code
        == 405
    )


def test_no_command_line_shows_the_token_and_the_browser_gets_there(
    filled: Path, tmp_path: Path, browser: Any
) -> None:
    seen, script = tmp_path / "seen", tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$@" > {seen}.part\nmv {seen}.part {seen}\n')
    script.chmod(0o700)
    with subprocess.Popen(
        [sys.executable, "-m", "qrmem", "view", "--memory", str(filled)],
        env=os.environ | {"BROWSER": f"{script} %s", "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        base, _, token = process.stdout.readline().strip().partition("#token=")
        until = time.monotonic() + 60
        while not seen.exists() and time.monotonic() < until:
            time.sleep(0.1)
        opened = seen.read_text().strip()
        assert opened.startswith("file://")
        assert token not in opened
        folder = Path(opened.removeprefix("file://")).parent
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        shown = browser.new_page()
        shown.goto(opened)
        shown.wait_for_url(f"{base}*")
        shown.wait_for_selector("text=Ada Lovelace")
        shown.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
    assert not folder.exists()


def test_a_trail_is_one_file_without_scripts(filled: Path, tmp_path: Path, browser: Any) -> None:
    written = tmp_path / "trail.html"
    command = [
        sys.executable,
        "-m",
        "qrmem",
        "trail",
        "--html",
        str(written),
        "--memory",
        str(filled),
    ]
    assert subprocess.run(command, capture_output=True, check=True).stdout
    shown = browser.new_page()
    shown.goto(written.as_uri())
    text = shown.inner_text("main")
    assert QUESTION in text
    assert HOSTILE in text
    assert shown.query_selector("img, script") is None
    shown.close()


def test_names_of_javascript_s_own_and_html_change_nothing(tmp_path: Path, browser: Any) -> None:
    names = ["__proto__", "constructor", "toString", "javascript:alert(1)", HOSTILE]
    names.append("\"'><script>alert(1)</script>")
    text = f"Ada Lovelace met {' met '.join(names)}."
    triples = [[head, f"met {HOSTILE}", tail] for head in names for tail in names if head != tail]
    passage = {"idx": "triples", "passage": text, "extracted_triples": triples}
    write(tmp_path / "triples.json", json.dumps({"docs": [passage]}).encode())
    with sync.open(str(tmp_path / "m.db"), embedder="none") as memory:
        metadata = {name: f"{name} value" for name in names}
        memory.add([{"id": n, "title": n, "text": text, "metadata": metadata} for n in names])
        memory.load_openie(tmp_path / "triples.json")
        memory.build_tree()
        for name in names:
            session = name.replace("\n", " ")
            memory.add_turn(
                "user", f"{name} lives in Oslo.", session=session, user=name, speaker=name
            )
        trails = [memory.ask(f"Who met {name}?").trail.id for name in names[:2]]
        keys = [entity.key for entity in memory.entities()]
    parts = ["", "documents", "entities", "trees", "trails", f"trails/{'/'.join(trails)}", "merges"]
    parts += [f"{kind}/{quote(name, safe='')}" for kind in PLACES for name in names]
    for name in (quote(one, safe="") for one in names):
        parts += [f"search/{name}", f"graph/{name}/20", f"documents/{name}/1/{name}", f"ask/{name}"]
        parts += [f"conversations/u:{name}", f"conversations/u:{name}/s:{name}"]
    parts += [f"entities/{quote(key, safe='')}" for key in keys]
    with viewed(tmp_path / "m.db") as address:
        page = browser.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.goto(address)
        page.wait_for_selector("main h2")
        own = "Object.getOwnPropertyNames(Object.prototype).join()"
        before = page.evaluate(own)
        for part in parts:
            shown = go(page, f"#/{part}")
            assert page.query_selector("main :is(img, script, iframe, .error)") is None, part
            assert page.query_selector("main a:not([href^='#/'])") is None, part
            assert not re.search(r"\[object|native code", shown), part
            if part.startswith("documents/"):
                assert all(f"{name}: {name} value" in shown for name in names)
        assert page.evaluate(own) == before
        assert problems == []
        page.close()
