"""LLMLingua-2 (B07): calls of its package, with a stand-in that drops given words."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qrmem.cli import main
from qrmem.eval import read_results

HOTPOT = str(Path(__file__).parent / "data" / "hotpot.json")
PACKAGE = """
class PromptCompressor:
    def __init__(self, model_name, use_llmlingua2, device_map, model_config):
        assert use_llmlingua2 and device_map == "cpu"
        assert model_config == {{"trust_remote_code": False}}

    def compress_prompt_llmlingua2(self, context, target_token):
        words = " ".join(context).split()
        kept = words[:: max(1, len(words) // {share})]
        return {{"compressed_prompt": " ".join(kept)}}
"""


@pytest.fixture(autouse=True)
def _not_kept() -> Iterator[None]:
    yield
    sys.modules.pop("llmlingua", None)


@pytest.mark.parametrize("share", ["target_token", "10"])
def test_the_compressed_text_is_read_within_the_window(
    share: str, own_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (own_folder / "llmlingua.py").write_text(PACKAGE.format(share=share))
    monkeypatch.syspath_prepend(own_folder)
    words = ["eval", "run", "hotpotqa", "--data", HOTPOT, "--embedder", "none", "--quiet"]
    assert main([*words, "--system", f"llmlingua-2:model={share}", "--out", "r"]) == 0
    rows = read_results(Path("r")).rows.values()
    assert [row.error for row in rows] == [""] * 3
    assert all(len(row.prediction.read) == 1 for row in rows)
    assert all(0 < row.prediction.steps[-1].tokens <= 4096 for row in rows)
