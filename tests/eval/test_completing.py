"""RepoEval: code continued from its repository, the hole and what stands behind it unseen."""

from pathlib import Path

import pytest
from servers.openai_server import OpenAIServer, in_thread

from qrmem.cli import main
from qrmem.eval.rundir import RunFolder

DATA = Path(__file__).parent / "data"
CART = "def total(items):\n    count = 0\n    for item in items:\n        count += item.price\n"
ITEM = (
    "# Items, to count.\nclass Item:\n    def __init__(self, price):\n        self.price = price\n"
)
SYSTEMS = "complete:rounds=0,complete,complete:alpha=0.5,repocoder,complete:oracle=true"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("QRMEM_MODEL", "QRMEM_EMBEDDER", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "line_level_completion_2k_context_codex.test.jsonl"
    path.write_bytes((DATA / "repoeval_line.jsonl").read_bytes())
    shop = tmp_path / "repositories" / "own_shop" / "shop"
    shop.mkdir(parents=True)
    (shop / "cart.py").write_text(CART)
    (shop / "item.py").write_text(ITEM)
    return str(tmp_path)


def test_code_is_continued_and_the_hole_is_never_shown(data: str) -> None:
    with in_thread(OpenAIServer()) as server:
        model = ("--model", "m", "--base-url", server.url, "--embedder", "none", "--quiet")
        words = ("eval", "run", "repoeval-line", "--data", data, "--system", SYSTEMS)
        assert main([*words, "--out", "r", *model]) == 0
        asked = [body["messages"][-1]["content"] for body in server.stats.bodies]
    rows = {row.system: row for row in RunFolder(Path("r")).rows().values()}
    assert not any(row.error for row in rows.values())
    assert len(rows["repocoder"].found.steps) == 2
    assert rows["complete:rounds=0"].found.read == ()
    assert rows["complete"].found.ranked == ("shop/item.py",)
    completions = [text for text in asked if "the code to go on with" in text]
    alone, helped = sorted(set(completions), key=len)
    assert "# class Item:" in helped
    assert "Item" not in alone
    assert not any("count += item.price" in text for text in completions)
    assert all(text.rstrip().endswith("for item in items:") for text in completions)
    # Nothing shortens code: it is compared as it is.
    assert len(completions) == len(asked)


def test_without_a_model_it_is_said_that_one_is_needed(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("eval", "run", "fragrel-table-1", "--data", data, "--embedder", "none", "--out", "r")
    assert main([*words]) != 0
    assert "needs a chat model" in capsys.readouterr().err
