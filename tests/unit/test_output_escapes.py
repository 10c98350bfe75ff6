"""What a document or an archive says cannot steer a terminal, in text and in JSON."""

import json
from argparse import Namespace

import pytest

from qrmem.cli import output

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
