"""Sessions replayed: what each system remembers, its calls, and a judge's ratings."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from servers.openai_server import OpenAIServer, in_thread

from qrmem.agents.build_state import silent
from qrmem.cli import main
from qrmem.config import Settings
from qrmem.eval import Row, RunOptions, RunSpec, judge, read_results, run_task
from qrmem.llm.prompting import TokenBudget
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import ChatReply, ChatRequest

pytestmark = pytest.mark.usefixtures("own_folder")

Says = Callable[[ChatRequest], str]


class Chatter:
    """Says what a function makes of a request; replies are numbered."""

    def __init__(self, **says: Says) -> None:
        self._says = says
        self.requests: list[ChatRequest] = []

    @property
    def name(self) -> str:
        return "chatter"

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        say = self._says.get(request.stage)
        return ChatReply(say(request) if say else f"reply {len(self.of('reply'))}")

    def of(self, stage: str) -> list[str]:
        return [r.messages[-1].content for r in self.requests if r.stage == stage]


TURNS = [
    ("stem-1-0", "Tell me how a bell is cast."),
    ("stem-1-1", "And how is it hung?"),
    ("writing-2-0", "Write a line on the sea."),
    ("writing-2-1", "Make it shorter."),
    ("math-3-0", "What is seven times eight?"),
    ("math-3-1", "And nine times eight?"),
    ("stem-1-Q", "How long does the casting of that bell take?"),
]
IDS = [f"turn-{n:08}" for n in range(1, 7)]


def session(path: Path, turns: list[tuple[str, str]] = TURNS) -> Path:
    said = []
    for info, value in turns:
        said += [{"from": "human", "value": value, "turn-info": info}]
        said += [{"from": "chatbot", "value": ""}]
    record = {"id": "session-0", "type": "retrospection", "conversations": said}
    path.write_text(json.dumps([record]))
    return path


async def played(
    system: str,
    chat: Chatter,
    *,
    window: int = 2048,
    turns: list[tuple[str, str]] = TURNS,
    out: str = "r",
) -> Row:
    spec = RunSpec(task="mtbenchplus", data=session(Path("s.json"), turns), systems=(system,))
    settings = Settings(model="chatter", embedder="none", window=window)
    await run_task(spec, Path(out), settings, RunOptions(listener=silent, chat=chat))
    (row,) = read_results(Path(out)).rows.values()
    assert not row.error
    return row


def memos(*lines: str) -> Says:
    return lambda request: json.dumps({"memos": list(lines)})


def notes(*numbers: int) -> Says:
    return lambda request: json.dumps({"notes": list(numbers)})


async def test_memochat_takes_notes_after_ten_lines_and_two_stay() -> None:
    chat = Chatter(memo=memos("1-6|Bells|Casting, hanging.", "7-10|The sea|A line."), pick=notes(1))
    row = await played("memochat", chat)
    (noted,) = chat.of("memo")
    lines = noted.splitlines()[1:-1]
    assert len(lines) == 10
    assert lines[2] == "3. User: Tell me how a bell is cast."
    assert lines[-1] == "10. Reply: reply 4"
    last = chat.of("reply")[-1]
    earlier, latest = last.split("Latest rounds:")
    assert "Bells: Casting, hanging.\nUser: Hello!" in earlier
    assert "Reply: reply 2" in earlier
    assert "The sea: A line." not in earlier
    assert "Make it shorter." in latest, "the last two lines stay"
    assert "Write a line on the sea." not in latest
    assert row.prediction.text == "reply 7"
    assert [made.replied for made in row.prediction.rounds] == [f"reply {n}" for n in range(1, 7)]


async def test_calls_of_memochat_are_counted_by_purpose() -> None:
    chat = Chatter(memo=memos("1-10|All|Everything."), pick=notes(1))
    row = await played("memochat", chat)
    calls = {stage: used.calls for stage, used in row.prediction.usage.online.items()}
    assert calls == {"memo": 1, "pick": 3, "reply": 7} == Counter(r.stage for r in chat.requests)
    assert [step.action for step in row.prediction.steps][-2:] == ["pick", "reply"]
    assert {"turn-00000001", "turn-00000006"} <= set(row.prediction.read)


async def test_memochat_takes_notes_of_few_long_lines_too() -> None:
    turns = [(info, f"{said} {'word ' * 600}") for info, said in TURNS[:3]]
    chat = Chatter(memo=memos("1-3|Long|So."), pick=notes())
    await played("memochat", chat, turns=turns, window=4096)
    assert len(chat.of("memo")) == 1


@pytest.mark.parametrize(
    "said", ["no notes today", "", json.dumps({"memos": ["Bells|1-3", "99|a|b"]})]
)
async def test_two_lines_report_all_unreadable_notes(said: str) -> None:
    chats = [Chatter(memo=lambda request: said, pick=notes(1)) for _ in range(2)]
    first, again = [await played("memochat", c, out=f"r{n}") for n, c in enumerate(chats)]
    note = chats[0].of("pick")[0].splitlines()[2]
    assert note.startswith("1. not sorted: ")
    assert len(re.findall(r"User: |Reply: ", note)) == 2
    assert first.prediction.text == again.prediction.text
    assert chats[0].of("pick") == chats[1].of("pick"), "what is drawn is drawn again"


@pytest.mark.parametrize("said", [notes(), notes(7, 0, -1), lambda request: "none of them"])
async def test_without_a_picked_note_only_the_latest_lines_are_sent(said: Says) -> None:
    chat = Chatter(memo=memos("1-10|All|Everything."), pick=said)
    await played("memochat", chat)
    assert "Earlier:\n(nothing)" in chat.of("reply")[-1]


async def test_chat_memory_recalls_rounds_in_the_order_of_time() -> None:
    long = [(info, f"{said} {'wave ' * 250}") for info, said in TURNS[:-1]]
    chat = Chatter()
    row = await played("fragment-chat:top=2", chat, turns=[*long, TURNS[-1]], window=4096)
    assert len(chat.of("reply")) == len(chat.requests) == 7, "recalling calls no model"
    earlier, latest = chat.of("reply")[-1].split("Latest rounds:")
    shown = [n for n in range(6) if f"<text turn {n:02}>" in earlier]
    assert shown == [0, 1]
    assert earlier.index("turn 00") < earlier.index("turn 01")
    assert "turn 05" in latest
    assert "turn 02" not in latest, "of the latest rounds 1,000 tokens"
    assert sorted(row.prediction.ranked) == IDS
    (found,) = read_results(Path("r")).systems.values()
    assert found.scores["recall@5"] == {"session-0": 1.0}


async def test_the_latest_turns_are_not_recalled_again() -> None:
    chat = Chatter()
    await played("fragment-chat", chat)
    earlier, latest = chat.of("reply")[-1].split("Latest rounds:")
    assert "(nothing)" in earlier
    assert all(f"turn {n:02}" in latest for n in range(6))


async def test_chat_with_the_latest_rounds_alone_keeps_those_that_fit() -> None:
    long = [(info, f"{said} {'wave ' * 250}") for info, said in TURNS[:-1]]
    chat = Chatter()
    row = await played("latest-chat", chat, turns=[*long, TURNS[-1]])
    assert "Earlier:\n(nothing)" in chat.of("reply")[-1]
    assert row.prediction.read
    assert set(row.prediction.read) == set(IDS[-len(row.prediction.read) :])
    (found,) = read_results(Path("r")).systems.values()
    assert not found.scores, "it ranks nothing"


@pytest.mark.parametrize("system", ["memochat", "fragment-chat", "latest-chat"])
async def test_no_call_of_a_session_is_longer_than_the_window(system: str) -> None:
    long = [(info, f"{said} {'wave ' * 500}") for info, said in TURNS[:-1]]
    last = (TURNS[-1][0], f"{'sea ' * 3000} and the last word?")
    chat = Chatter(
        memo=memos("1-3|Bells|Cast.", "4-9|Sea|Waves."),
        pick=notes(1, 2),
        reply=lambda request: "well " * 400,
    )
    await played(system, chat, turns=[*long, last], window=1500)
    budget = TokenBudget(BuiltinTokenizer())
    assert all(budget.fits(request, 1500) for request in chat.requests)
    assert "the last word?\n</text>" in chat.of("reply")[-1]
    if system == "memochat":
        assert chat.of("memo")


def test_without_a_model_the_turns_are_ranked_and_nothing_is_answered(
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = str(session(Path("s.json")))
    words = ["eval", "run", "mtbenchplus", "--data", data, "--embedder", "none", "--quiet"]
    assert main([*words, "--system", "fragment-chat", "--out", "r"]) == 0
    told = capsys.readouterr().out
    assert "recall@5" in told
    assert "unanswerable" not in told
    assert main([*words, "--system", "memochat", "--out", "m"]) == 3
    assert "'memochat' needs a chat model" in capsys.readouterr().err


async def test_other_questions_are_no_sessions() -> None:
    hotpot = Path(__file__).parent / "data" / "hotpot.json"
    spec = RunSpec(task="hotpotqa", data=hotpot, systems=("memochat", "fragment-chat"), size=1)
    settings = Settings(model="chatter", embedder="none")
    ran = await run_task(spec, Path("r"), settings, RunOptions(listener=silent, chat=Chatter()))
    assert ran.failed == 2
    for row in read_results(Path("r")).rows.values():
        assert row.error == (
            "UsageError: it plays a conversation through: it runs on MTBench+ alone"
        )


async def test_the_judge_sees_the_rounds_that_the_question_goes_back_to() -> None:
    await played("fragment-chat", Chatter())
    rater = Chatter(rate=lambda request: json.dumps({"reasoning": "true", "rating": 83}))
    settings = Settings(model="chatter", embedder="none")
    (made,) = await judge(Path("r"), settings, RunOptions(listener=silent, chat=rater))
    assert (made.rating, made.most) == (83, 100)
    (seen,) = rater.of("rate")
    assert "Tell me how a bell is cast.\nReply: reply 1" in seen
    assert "And how is it hung?\nReply: reply 2" in seen
    assert "sea" not in seen
    assert seen.endswith("The reply:\n<text>\nreply 7\n</text>")
    (found,) = read_results(Path("r")).systems.values()
    mean = found.mean("rating")
    assert mean is not None
    assert mean.value == pytest.approx(0.83)


@pytest.mark.parametrize("said", ['{"reasoning": "", "rating": 0}', '{"rating": 101}', "[[50]]"])
async def test_a_rating_out_of_range_or_unreadable_is_missing(said: str) -> None:
    await played("latest-chat", Chatter())
    rater = Chatter(rate=lambda request: said)
    settings = Settings(model="chatter", embedder="none")
    (made,) = await judge(Path("r"), settings, RunOptions(listener=silent, chat=rater))
    assert made.rating is None
    (found,) = read_results(Path("r")).systems.values()
    assert found.mean("rating") is None


def test_table_3_has_ratings_by_kind_with_the_papers_numbers_beside(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("data").mkdir()
    session(Path("data/mtbenchplus.json"))
    labels = "FragRel,MemoChat,Latest rounds alone"
    with in_thread(OpenAIServer()) as server:
        model = ["--model", "test", "--base-url", server.url, "--quiet"]
        words = ["eval", "run", "fragrel-table-3", "--data", "data", "--embedder", "none"]
        assert main([*words, "--system", labels, "--out", "r", *model]) == 0
        assert "| FragRel | here |  |  100.0 " not in capsys.readouterr().out
        assert main(["eval", "judge", "r", *model]) == 0
        told = capsys.readouterr().out
    assert "| system | run | MTBench+ rating | MTBench+ recall@5 |" in told
    assert "MTBench+ retrospection rating" in told
    for label in labels.split(","):
        assert f"| {label} | here |" in told
    assert "| MemoryBank | paper, ChatGPT | 42.44 |" in told
    assert "| 12,600 | 1,200 |" in told
    assert "Ratings by test; without a rating, and left out: none." in told
    assert "rating" in Path("r/report/fragrel-table-3.csv").read_text()


def test_answers_without_a_rating_are_counted_in_the_report() -> None:
    async def judged() -> None:
        await played("latest-chat", Chatter())
        rater = Chatter(rate=lambda request: "I would rather not.")
        settings = Settings(model="chatter", embedder="none")
        await judge(Path("r"), settings, RunOptions(listener=silent, chat=rater))

    asyncio.run(judged())
    assert main(["eval", "report", "r"]) == 0
    assert "| latest-chat | chatter | 0 | 1 |" in Path("r/report/report.md").read_text()


def test_a_plan_of_sessions_counts_notes_and_replies(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["eval", "plan", "mtbenchplus", "--data", str(session(Path("s.json"))), "--json"]
    systems = ["--system", "memochat,latest-chat", "--model", "gpt-4o-mini", "--embedder", "none"]
    assert main([*words, *systems]) == 0
    (run,) = json.loads(capsys.readouterr().out)
    calls = {found["system"]: found["most"]["calls"] for found in run["systems"]}
    assert calls == {"memochat": 11, "latest-chat": 7}


async def test_history_moves_out_once_as_in_the_paper() -> None:
    """FragRel, B.3: over 1,000 tokens, all rounds go to the external memory, again and again."""
    long = [(info, f"{said} " + "word " * 400) for info, said in TURNS[:-1]] + TURNS[-1:]
    shown = {}
    for history in ("rolling", "once"):
        chat = Chatter()
        system = f"fragment-chat:score=bm25:history={history}"
        row = await played(system, chat, turns=long, out=history)
        recalled = [s.score for step in row.prediction.steps for s in step.read]
        assert any(score > 0 for score in recalled), "the trail has what they were recalled by"
        prompts = chat.of("reply")
        latest = [p.partition("Latest rounds:")[2].partition("The user says:")[0] for p in prompts]
        shown[history] = [len(re.findall(r"<text", text)) for text in latest]
    assert shown["rolling"] == [0, 1, 2, 2, 2, 2, 2]
    assert shown["once"] == [0, 1, 2, 0, 1, 2, 0]
