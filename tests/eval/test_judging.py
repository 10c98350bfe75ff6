"""A chat model rates the answers of a run; an answer without a rating is missing, not zero."""

import asyncio
import json
from pathlib import Path

import pytest
from servers.openai_server import OpenAIServer, in_thread

from qrmem.agents.build_state import silent
from qrmem.cli import main
from qrmem.config import Settings
from qrmem.errors import CapReached, StoreUnavailable, UsageError
from qrmem.eval import RunOptions, judge, read_results
from qrmem.eval.judging import ratings
from qrmem.eval.run_folder import RATINGS, RunFolder
from qrmem.llm.budget import Caps
from qrmem.types import ChatReply, ChatRequest

BEAM = str(Path(__file__).parent / "data" / "beam")
HOTPOT = str(Path(__file__).parent / "data" / "hotpot.json")
SETTINGS = Settings(model="a-judge", embedder="none")


class Judge:
    """Rates by what the question holds; of some answers it says nothing that is a rating."""

    def __init__(self, says: dict[str, str]) -> None:
        self._says = says
        self.asked: list[str] = []

    @property
    def name(self) -> str:
        return "a-judge"

    async def complete(self, request: ChatRequest) -> ChatReply:
        said = request.messages[1].content
        self.asked.append(said)
        return ChatReply(next(reply for part, reply in self._says.items() if part in said))


def rated(rating: int) -> str:
    return json.dumps({"reasoning": "as it is", "rating": rating})


SAYS = {"Marigold born": rated(8), "lighthouse": "I would rather not.", "": rated(42)}


@pytest.fixture
def folder(own_folder: Path) -> Path:
    out = own_folder / "r"
    words = ["--data", HOTPOT, "--embedder", "none", "--system", "bm25", "--quiet"]
    assert main(["eval", "run", "hotpotqa", *words, "--out", str(out)]) == 0
    return out


def means(chat: Judge, **options: int) -> RunOptions:
    return RunOptions(listener=silent, chat=chat, caps=Caps(**options))


async def test_an_answer_without_a_rating_is_missing_and_not_zero(folder: Path) -> None:
    made = await judge(folder, SETTINGS, means(Judge(SAYS)))
    assert sorted((r.item, r.rating) for r in made if r.rating) == [("h1", 8)]
    assert len(made) == 3
    (found,) = read_results(folder).systems.values()
    mean = found.mean("rating")
    assert mean is not None
    assert (mean.n, mean.value) == (1, 0.8)


async def test_the_judge_sees_question_reference_and_answer_fenced(folder: Path) -> None:
    chat = Judge({"": rated(5)})
    await judge(folder, SETTINGS, means(chat))
    assert len(chat.asked) == 3
    first = next(said for said in chat.asked if "Marigold born" in said)
    assert "<text>\nVantry\n</text>" in first
    assert first.count("</text>") == 2


async def test_a_judge_continues_where_it_stopped_and_asks_for_what_is_missing(
    folder: Path,
) -> None:
    with pytest.raises(CapReached):
        await judge(folder, SETTINGS, means(Judge({"": rated(5)}), calls=1))
    assert len(ratings(folder)) == 1
    with (folder / RATINGS).open("a") as file:
        file.write('{"system": "bm25", "it')
    again = Judge({"": rated(6)})
    made = await judge(folder, SETTINGS, means(again))
    assert len(made) == len(again.asked) == 2
    assert sorted(r.rating or 0 for r in ratings(folder).values()) == [5, 6, 6]
    assert not await judge(folder, SETTINGS, means(Judge({})))


async def test_one_judge_rates_a_run(folder: Path) -> None:
    await judge(folder, SETTINGS, means(Judge({"": rated(5)})))
    other = SETTINGS.with_(model="another")
    with pytest.raises(UsageError, match="was judged by a-judge"):
        await judge(folder, other, means(Judge({})))


def test_the_command_rates_and_reports(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with in_thread(OpenAIServer()) as server:
        words = ["eval", "judge", str(folder), "--model", "test", "--base-url", server.url]
        assert main(words) in {0, 1}
        assert server.stats.requests >= 3
        assert "a rating (not zero" in capsys.readouterr().err
    assert main([*words, "--workers", "2"]) == 2
    assert "a judge rates in one process: leave --workers out" in capsys.readouterr().err
    assert main(["eval", "judge", str(folder)]) == 3
    assert "missing: a chat model as judge" in capsys.readouterr().err
    assert main(["eval", "judge", str(folder / "nowhere"), "--model", "test"]) == 2


async def test_several_answers_are_rated_at_the_same_time(folder: Path) -> None:
    class Patient(Judge):
        """Answers once three are asked."""

        asked_at_once = asyncio.Barrier(3)

        async def complete(self, request: ChatRequest) -> ChatReply:
            await asyncio.wait_for(self.asked_at_once.wait(), 60)
            return await super().complete(request)

    chat = Patient({"": rated(5)})
    heard: list[str] = []
    many = RunOptions(listener=lambda event: heard.append(event.kind), chat=chat, concurrency=3)
    assert len(await judge(folder, SETTINGS, many)) == 3
    assert heard.count("item") == 3
    assert "paid" in heard


def test_a_rating_is_read_whatever_its_reason_holds_and_a_cut_line_is_none(folder: Path) -> None:
    reason = "one\u2028two\x85three"
    chat = Judge({"": json.dumps({"reasoning": reason, "rating": 7}, ensure_ascii=False)})
    asyncio.run(judge(folder, SETTINGS, means(chat)))
    with (folder / RATINGS).open("ab") as file:
        file.write('{"reason": "é'.encode()[:-1])
    assert {one.reason for one in ratings(folder).values()} == {reason}
    assert len(ratings(folder)) == 3


async def test_two_judges_of_a_run_do_not_ask_for_the_same_ratings(folder: Path) -> None:
    chat = Judge({"": rated(7)})
    with RunFolder(folder).hold(), pytest.raises(StoreUnavailable, match="wait until it ends"):
        await judge(folder, SETTINGS, means(chat))
    assert not chat.asked
    assert len(await judge(folder, SETTINGS, means(chat))) == 3


def test_a_rating_that_is_damaged_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(judge(folder, SETTINGS, means(Judge({"": rated(5)}))))
    lines = (folder / RATINGS).read_text().splitlines()
    (folder / RATINGS).write_text("\n".join([lines[0], lines[1][:20], lines[2], ""]))
    assert main(["eval", "report", str(folder)]) == 2
    assert "ratings.jsonl: line 2 cannot be read" in capsys.readouterr().err


async def test_an_answer_to_no_item_of_the_run_is_named(folder: Path) -> None:
    rows = (folder / "rows.jsonl").read_text().replace('"item":"h1"', '"item":"q1"')
    (folder / "rows.jsonl").write_text(rows)
    with pytest.raises(UsageError, match=r"items\.jsonl lacks the item 'q1', which has a result"):
        await judge(folder, SETTINGS, means(Judge({"": rated(5)})))


@pytest.fixture
def run_of_beam(own_folder: Path) -> Path:
    out = own_folder / "b"
    words = ["--data", BEAM, "--embedder", "none", "--system", "bm25", "--quiet"]
    assert main(["eval", "run", "beam", *words, "--out", str(out)]) == 0
    return out


def points(*of_criteria: int) -> str:
    return json.dumps({"reasoning": "as it is", "points": of_criteria})


async def test_an_answer_is_rated_by_the_criteria_of_its_question(run_of_beam: Path) -> None:
    chat = Judge({"The answer says: 1,060": points(2, 1), "colour": points(0), "": rated(5)})
    made = {one.item: one for one in await judge(run_of_beam, SETTINGS, means(chat))}
    assert made["7-knowledge_update-1"].share == 0.75
    assert made["7-abstention-1"].share == 0
    assert made["7-instruction_following-1"].share == 0.5
    asked = next(said for said in chat.asked if "1,060 degrees\n</text>" in said)
    assert "2. <text>\nThe answer says that it was raised\n</text>" in asked
    assert not await judge(run_of_beam, SETTINGS, means(Judge({})))
    mean = read_results(run_of_beam).systems["bm25"].mean("rating")
    assert mean is not None
    assert mean.n == 3


@pytest.mark.parametrize("bad", [(2,), (2, 1, 0), (2, 3), (-1, 2)])
async def test_points_that_do_not_fit_the_criteria_are_no_rating(
    run_of_beam: Path, bad: tuple[int, ...]
) -> None:
    chat = Judge({"The answer says: 1,060": points(*bad), "colour": points(1), "": rated(5)})
    made = {one.item: one for one in await judge(run_of_beam, SETTINGS, means(chat))}
    assert made["7-knowledge_update-1"].rating is None
    assert made["7-knowledge_update-1"].reason.startswith(str(list(bad)))
    assert made["7-abstention-1"].share == 0.5
