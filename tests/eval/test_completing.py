"""RepoEval: code continued from its repository; the hole and the text after it stay hidden."""

import json
from pathlib import Path

import pytest
from servers.openai_server import OpenAIServer, in_thread

from qrmem.agents.build_state import silent
from qrmem.cli import main
from qrmem.config import Settings
from qrmem.eval import RunOptions, RunSpec, read_results, run_task
from qrmem.types import ChatReply, ChatRequest

DATA = Path(__file__).parent / "data"
CART = "def total(items):\n    count = 0\n    for item in items:\n        count += item.price\n"
ITEM = (
    "# Items, to count.\nclass Item:\n    def __init__(self, price):\n        self.price = price\n"
)
COUNT = "def reckon(basket):\n    calls = 0\n    return calls\n"
ROUNDED = "def rounded(amount, cents):\n    return amount // cents * cents\n"
GUESSES = ("zebra(stripes)", "giraffe(neck)", "        count += item.price")
SYSTEMS = "complete:rounds=0,complete,complete:alpha=0.5,repocoder,complete:oracle=true"


@pytest.fixture
def data(own_folder: Path) -> str:
    path = own_folder / "line_level_completion_2k_context_codex.test.jsonl"
    path.write_bytes((DATA / "repoeval_line.jsonl").read_bytes())
    shop = own_folder / "repositories" / "own_shop" / "shop"
    shop.mkdir(parents=True)
    (shop / "cart.py").write_text(CART)
    (shop / "item.py").write_text(ITEM)
    return str(own_folder)


def test_code_is_continued_and_the_hole_is_never_shown(data: str) -> None:
    with in_thread(OpenAIServer()) as server:
        model = ("--model", "m", "--base-url", server.url, "--embedder", "none", "--quiet")
        words = ("eval", "run", "repoeval-line", "--data", data, "--system", SYSTEMS)
        assert main([*words, "--out", "r", *model]) == 0
        asked = [body["messages"][-1]["content"] for body in server.stats.bodies]
    rows = {row.system: row for row in read_results(Path("r")).rows.values()}
    assert not any(row.error for row in rows.values())
    # The one file is read in each round: a second one would send the same request.
    assert len(rows["repocoder"].prediction.steps) == 1
    assert rows["complete:rounds=0"].prediction.read == ()
    assert rows["complete"].prediction.ranked == ("shop/item.py",)
    completions = [text for text in asked if "the code to go on with" in text]
    alone, helped = sorted(set(completions), key=len)
    assert "# class Item:" in helped
    assert "Item" not in alone
    assert not any("count += item.price" in text for text in completions)
    assert all(text.rstrip().endswith("for item in items:") for text in completions)
    # Nothing shortens code: it is compared as it is.
    assert len(completions) == len(asked)


class Guesser:
    """Returns one line after the other, for any number of requests."""

    def __init__(self, *lines: str) -> None:
        self._lines = lines
        self.asked: list[str] = []

    @property
    def name(self) -> str:
        return "guesser"

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.asked.append(request.messages[-1].content)
        return ChatReply(json.dumps({"code": self._lines[len(self.asked) - 1]}))


async def test_the_best_of_several_rounds_counts_and_all_of_them_cost(data: str) -> None:
    shop = Path(data) / "repositories" / "own_shop" / "shop"
    (shop / "zebra.py").write_text("def zebra(stripes):\n    return stripes.zebra\n")
    (shop / "giraffe.py").write_text("def giraffe(neck):\n    return neck.giraffe\n")
    settings = Settings(model="guesser", embedder="none")
    for system, right in (
        ("repocoder:top=1:rounds=4:pick=best", 1.0),
        ("repocoder:top=1:rounds=4", 0.0),
    ):
        out = Path(system.replace(":", "-"))
        spec = RunSpec(task="repoeval-line", data=Path(data), systems=(system,))
        await run_task(spec, out, settings, RunOptions(listener=silent, chat=Guesser(*GUESSES)))
        (found,) = read_results(out).systems.values()
        assert found.scores["code_em"] == {"own_shop/0": right}
        assert found.online.calls == 4
        (row,) = found.rows.values()
        # The last round sees what the first one saw, and is answered out of the cache.
        assert [step.reason for step in row.prediction.steps] == [*GUESSES, GUESSES[0]]


async def test_each_round_is_asked_with_what_the_one_before_predicted(data: str) -> None:
    (Path(data) / "repositories" / "own_shop" / "shop" / "count.py").write_text(COUNT)
    chat = Guesser("calls = reckon(basket)", "x")
    spec = RunSpec(task="repoeval-line", data=Path(data), systems=("repocoder:top=1",))
    settings = Settings(model="guesser", embedder="none")
    await run_task(spec, Path("r"), settings, RunOptions(listener=silent, chat=chat))
    first, second = chat.asked
    assert "def reckon(basket)" not in first
    assert "def reckon(basket)" in second


def test_the_oracle_asks_with_the_true_code_and_never_shows_it(data: str) -> None:
    shop = Path(data) / "repositories" / "own_shop" / "shop"
    (shop / "cart.py").write_text(f"{CART}    cents = rounded(cents)\n    return rounded(cents)\n")
    (shop / "count.py").write_text(ROUNDED)
    # One run each: of systems in one run either may be the first to ask.
    (plain,) = asked_by("complete:top=1", data)
    (oracle,) = asked_by("complete:top=1:oracle=true", data)
    assert "def rounded" not in plain
    assert "def rounded" in oracle
    assert not any("        count += item.price" in text for text in (plain, oracle))


def asked_by(system: str, data: str) -> list[str]:
    """Return what a system asks the model in a run of its own."""
    with in_thread(OpenAIServer()) as server:
        model = ("--model", "m", "--base-url", server.url, "--embedder", "none", "--quiet")
        words = ("eval", "run", "repoeval-line", "--data", data, "--system", system)
        assert main([*words, "--out", system.replace(":", "-"), *model]) == 0
        return [body["messages"][-1]["content"] for body in server.stats.bodies]


def test_without_a_model_an_error_says_that_one_is_needed(
    data: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("eval", "run", "fragrel-table-1", "--data", data, "--embedder", "none", "--out", "r")
    assert main([*words]) != 0
    assert "needs a chat model" in capsys.readouterr().err
