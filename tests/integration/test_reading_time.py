"""Reading takes time in proportion to a text's length, whatever the text."""

import time
from contextlib import suppress

import pytest

from qrmem.errors import BadDocument
from qrmem.text.files import from_bytes
from qrmem.text.sentences import sentences

BASE, DOUBLINGS = 8_000, 4
MOST = 48
"""Growth of the time over all doublings, of which the text's is 16."""
LEAST = 0.003
"""Seconds below which a reading is too short to be compared."""

HTML = """
<a |<a b=|<a b='|<!--|<!-- -->|</|</p>|<?|<!|<![CDATA[|<svg></p>
|<math></p>|<p>|<b>|<b><p>|<div>|<a><div>
|<li>|<table>|<table><tr><td>|<script>|<script></script>|<style>|<select><option>|<title>|<pre>|&amp;|&#|<h1>x
|<br>|<iframe>|</script
""".replace("\n", "").split("|")
MARKDOWN = ["# x   \t ", " ", "#", "---\n", "a: x   ", "```\n", "Chapter 1\n\n", "Passage 1: "]
TEXTS = ["Mr. ", "a\n", '"', "... ", "A.B.", "\ufeff", "(", "x"]


def seconds(name: str, start: str, piece: str, length: int) -> float:
    """Processor time of reading a text of some length, and of cutting it into sentences."""
    data = (start + piece * (length // len(piece))).encode()
    began = time.process_time()
    with suppress(BadDocument):
        sentences(from_bytes(data, name).text)
    return time.process_time() - began


@pytest.mark.parametrize(
    ("name", "start", "piece"),
    [("a.html", "<p>text ", piece) for piece in HTML]
    + [("a.md", start, piece) for start in ("text\n# x", "---\na: x") for piece in MARKDOWN]
    + [("a.txt", "text ", piece) for piece in TEXTS],
)
def test_reading_is_linear(name: str, start: str, piece: str) -> None:
    seconds(name, start, piece, BASE)
    first = min(seconds(name, start, piece, BASE) for _ in range(3))
    last = seconds(name, start, piece, BASE * 2**DOUBLINGS)
    assert last <= MOST * max(first, LEAST)
