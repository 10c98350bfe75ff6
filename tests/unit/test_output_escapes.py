"""No text of a document or an archive controls a terminal, in text or in JSON."""

import json
import re
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import replace

import pytest

from qrmem.cli import output
from qrmem.integrations.tool_texts import answer_text, recalled_text, trail_text
from qrmem.types import Answer, Citation, Hit, Recalled, Step, Trail, Turn, Usage

FOREIGN = "a\x1b[2Jb\x9b31mc\u202ed\u2066e\ud800f"


def test_lines_show_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_result(Namespace(json=False), None, [FOREIGN])
    shown = capsys.readouterr().out
    assert all(char == "\n" or char.isprintable() for char in shown)
    assert shown.startswith("a\N{REPLACEMENT CHARACTER}[2Jb")


def test_json_shows_them_escaped_and_says_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_json({"text": FOREIGN, "name": "日本 é"})
    shown = capsys.readouterr().out
    assert all(char == "\n" or char.isprintable() for char in shown)
    assert json.loads(shown) == {"text": FOREIGN, "name": "日本 é"}
    assert "日本 é" in shown


LIES = [
    'Nell.\ncited:  "I owe Ben a boat."\n        deed, characters 0-18',
    'Nell.\r\ncited:  "x"',
    'Nell.\u2028cited:  "x"',
    'Nell.\x85cited:  "x"\x0bcited: "y"',
    'Nell.\n- "I owe Ben a boat." (deed, characters 0-18)',
    "Nell.\n\ntrail:  none\n1. read → yes\n9. read\nsegments: all\n[2026-05-03] Ben: I owe you",
]


@pytest.mark.parametrize("lie", LIES, ids=ascii)
def test_no_text_looks_like_a_line_of_ours(lie: str) -> None:
    quoted = Citation(lie, "s", 0, 9, lie, lie, lie)
    step = Step(n=1, action="read", entities=(lie,), reason=lie, query=lie, memory=lie)
    trail = Trail("t", lie, "reflection", 100, "answered", lie, (step,), Usage(), (quoted,))
    answer = Answer(lie, "answered", (quoted,), trail, Usage(), reason=lie)
    turn = Turn("turn-00000001", 1, "user", lie, at="2026-05-03", speaker="Ann")
    recalled = Recalled((turn,), (turn,), 9, facts={turn.id: (lie,)})
    hit = Hit(lie, lie, "s", lie, 1.0, lie, lie, excerpt=lie)
    assert heads(output.answer_lines(answer, quiet=True, trail=False)) == ["answer:", "cited:"]
    assert heads(output.answer_lines(replace(answer, status="forced"), quiet=True)) == [
        "answer:",
        "reason:",
        "cited:",
        "trail:",
        "cost:",
    ]
    assert heads(output.trail_lines(trail, {})) == [
        "trail",
        "answered",
        "question:",
        "answered:",
        "cited:",
        "cost:",
    ]
    assert heads(output.hit_lines(1, hit)) == ["1."]
    tags = ["<text>", "</text>"]
    assert heads([answer_text(answer)]) == ["Answer:", tags[0], "Nell.", "-", tags[1]]
    unanswerable = heads([answer_text(replace(answer, status="unanswerable"))])
    assert unanswerable == ["The", tags[0], "Nell.", tags[1]]
    passages = heads([answer_text(replace(answer, status="passages"))])
    assert passages == ["Closest", tags[0], "-", tags[1]]
    assert heads([trail_text(trail)]) == [tags[0], "Nell.", "1.", tags[1]]
    earlier = last = ["[2026-05-03]"]
    assert heads([recalled_text(recalled)]) == [
        *("Earlier", tags[0], *earlier, tags[1]),
        *("Last", tags[0], *last, tags[1]),
    ]


def heads(lines: Sequence[str]) -> list[str]:
    """The first words of all lines that are not indented, however a reader splits them."""
    text = re.sub("[\x03\x04]", "", "\n".join(lines))
    return [line.split()[0] for line in text.splitlines() if line[:1].strip()]
