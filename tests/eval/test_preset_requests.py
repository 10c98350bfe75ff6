"""The requests of three presets have the papers' inputs in the papers' order."""

import shutil
from pathlib import Path

import pytest

from tools.preset_requests import ASKED, in_order, main

DATA = Path(__file__).parent / "data"


def test_every_prompt_of_the_papers_is_sent_with_its_inputs_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QRMEM_SEGMENT_TOKENS", "60")
    (tmp_path / "longbench").mkdir()
    shutil.copy(DATA / "quality.jsonl", tmp_path / "QuALITY.v1.0.1.htmlstripped.dev")
    shutil.copy(DATA / "mtbenchplus.json", tmp_path)
    stories = DATA / "longbench_narrativeqa_keyed.json"
    shutil.copy(stories, tmp_path / "longbench" / "narrativeqa.json")
    main([str(tmp_path), "--write", str(tmp_path / "page.md")])
    page = (tmp_path / "page.md").read_text(encoding="utf-8")
    for name, (paper, words) in ASKED.items():
        assert f"### {name}, " in page, "no request has these inputs in this order"
        shown = page.split(f"### {name}, ")[1].split("\n#")[0]
        assert f"The paper: {paper}" in shown
        assert in_order(shown.split(paper)[1], words)


def test_words_in_another_order_are_noticed() -> None:
    assert in_order("a b c", ["a", "c"])
    assert not in_order("a b c", ["c", "a"])
    assert not in_order("a", ["a", "a"])
