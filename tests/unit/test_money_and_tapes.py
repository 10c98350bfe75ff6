"""Prices, pace and cassettes."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from fakes import ScriptedModel
from hypothesis import given
from hypothesis import strategies as st

from qrmem.config import Secret, Settings
from qrmem.errors import MissingError, OutputFailed, UsageError
from qrmem.llm.budget import Budget, load_prices
from qrmem.llm.meter import Meter
from qrmem.llm.recorder import Recorder, Replayer
from qrmem.llm.retry import BURST, RateLimiter
from qrmem.llm.routing import ChatModels
from qrmem.llm.servers import embedding_endpoint, endpoint
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import ChatRequest, Message

# --- prices --------------------------------------------------------------------------------------


def test_known_models_have_a_price_and_a_date_in_the_name_is_no_matter() -> None:
    prices = load_prices()
    known = prices.of("gpt-4o-mini")
    assert known is not None
    assert prices.of("gpt-4o-mini-2024-07-18") == known
    assert prices.of("my-own-model") is None
    assert prices.date


def test_a_users_prices_stand_over_the_packages(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('date = "2031-01-01"\n[models."gpt-4o"]\ninput = 1\noutput = 2\n')
    prices = load_prices(file)
    assert prices.date == "2031-01-01"
    assert prices.of("gpt-4o") is not None
    assert prices.of("gpt-4o").of(1_000_000, 1_000_000) == 3.0  # type: ignore[union-attr]
    assert prices.of("gpt-4.1") == load_prices().of("gpt-4.1")


@pytest.mark.parametrize(
    "text",
    [
        "[models.x]\ninput = 1\n",
        "models = 3\n",
        "[models.x]\ninput = -1\noutput = 1\n",
        "[models.x]\ninput = nan\noutput = 1\n",
        "[models.x]\ninput = 1\noutput = inf\n",
        "[models.x]\ninput = 1\noutput = 2\ncached = nan\n",
        "[models.x]\ninput = true\noutput = 1\n",
        "[models.x]\ninput = 1\noutput = 2\ncahced = 3\n",
        "=",
    ],
)
def test_invalid_prices_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=r"prices\.toml"):
        load_prices(file)


def test_a_price_file_of_an_editor_that_marks_its_encoding_is_read(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_bytes("\ufeff[models.x]\r\ninput = 1\r\noutput = 2\r\n".encode())
    assert load_prices(file).of("x") is not None


def test_a_missing_price_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.toml"):
        load_prices(tmp_path / "gone.toml")


# --- rate limiter --------------------------------------------------------------------------------


@given(
    st.integers(1, 600),
    st.lists(st.tuples(st.floats(0, 30), st.integers(1, 4000)), min_size=1, max_size=60),
)
def test_no_minute_holds_more_requests_than_allowed_and_a_burst(
    allowed: int, arrivals: list[tuple[float, int]]
) -> None:
    now = 0.0
    limiter = RateLimiter(requests=allowed, tokens=0, clock=lambda: now)
    turns: list[float] = []
    for gap, tokens in arrivals:
        now += gap
        turns.append(now + limiter.reserve(tokens))
    most = allowed * (60 + BURST) / 60 + 2
    for start in turns:
        assert sum(start <= turn < start + 60 for turn in turns) <= most
    assert turns == sorted(turns)


def test_tokens_are_spread_too_and_no_limit_is_no_wait() -> None:
    limiter = RateLimiter(requests=0, tokens=6000, clock=lambda: 100.0)
    waits = [limiter.reserve(1000) for _ in range(4)]
    assert waits == pytest.approx([0, 5, 15, 25])
    free = RateLimiter(requests=0, tokens=0, clock=lambda: 100.0)
    assert [free.reserve(10**6) for _ in range(3)] == [0, 0, 0]


# --- cassettes -----------------------------------------------------------------------------------


def request(text: str, **changes: Any) -> ChatRequest:
    messages = (Message("system", "Read."), Message("user", f"Passage:\n{text}"))
    return ChatRequest(messages=messages, **{"stage": "read"} | changes)


def metered(chat: Any, reading: Any = None, *, recorder: Recorder) -> Meter:
    models = ChatModels(chat, {"reading": reading} if reading else {}, recorder=recorder)
    return Meter(models, Budget(), BuiltinTokenizer())


async def recorded(path: Path, *texts: str) -> None:
    chat = ScriptedModel(*(f"reply to {t}" for t in texts), name="m")
    with Recorder(path, "m") as recorder:
        for text in texts:
            wanted = request(text, schema={"type": "object"})
            await metered(chat, recorder=recorder).complete(wanted)


async def test_a_recording_is_replayed_without_a_model(tmp_path: Path) -> None:
    await recorded(tmp_path / "a.jsonl", "one", "two")
    player = Replayer(tmp_path / "a.jsonl")
    assert player.name == "m"
    reply = await player.complete(request("two", schema={"type": "object"}, segment_id="s"))
    assert reply.text == "reply to two"


async def test_the_order_of_replies_does_not_change_a_cassette(tmp_path: Path) -> None:
    await recorded(tmp_path / "a.jsonl", "one", "two")
    await recorded(tmp_path / "b.jsonl", "two", "one")
    text = (tmp_path / "a.jsonl").read_text()
    assert text == (tmp_path / "b.jsonl").read_text()
    assert all(json.loads(line) for line in text.splitlines())


async def test_an_interrupted_recording_can_be_replayed(tmp_path: Path) -> None:
    chat = ScriptedModel("a", name="m")
    recorder = Recorder(tmp_path / "a.jsonl", "m")
    await metered(chat, recorder=recorder).complete(request("one"))
    assert (await Replayer(tmp_path / "a.jsonl").complete(request("one"))).text == "a"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (request("three"), "'user: one' where now 'user: three'"),
        (request("one", temperature=0.7), "'temperature: 0.0' where now 'temperature: 0.7'"),
        (request("one", attempt=1), "'attempt: 0' where now 'attempt: 1'"),
    ],
)
async def test_an_unknown_request_fails_and_names_the_difference(
    tmp_path: Path, changed: ChatRequest, words: str
) -> None:
    chat = ScriptedModel("a", name="m")
    with Recorder(tmp_path / "a.jsonl", "m") as recorder:
        await metered(chat, recorder=recorder).complete(request("one"))
    with pytest.raises(UsageError, match=words):
        await Replayer(tmp_path / "a.jsonl").complete(changed)


async def test_a_difference_late_in_a_line_is_shown(tmp_path: Path) -> None:
    long = "again and " * 40
    await recorded(tmp_path / "a.jsonl", f"{long} by land")
    with pytest.raises(UsageError, match=r"'…\S.* by land' where now '…\S.* by sea' is asked"):
        await Replayer(tmp_path / "a.jsonl").complete(
            request(f"{long} by sea", schema={"type": "object"})
        )


async def is_replayed(path: Path, text: str) -> bool:
    try:
        await Replayer(path).complete(request(text, schema={"type": "object"}))
    except UsageError:
        return False
    return True


async def test_a_recording_killed_in_mid_line_is_replayed_and_continued(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.jsonl"
    await recorded(path, "one", "two")
    whole = path.read_text()
    path.write_text(whole[:-100])
    replayed = [text for text in ("one", "two") if await is_replayed(path, text)]
    assert len(replayed) == 1
    await recorded(path, "two")
    assert path.read_text() == whole


async def test_a_tape_that_cannot_be_written_stops_no_run_and_leaves_what_was_there(
    tmp_path: Path,
) -> None:
    path = tmp_path / "folder" / "a.jsonl"
    path.parent.mkdir()
    chat = ScriptedModel("paid for", name="m")
    tape = Recorder(path, "m")
    path.unlink()
    path.mkdir()  # no user can write a file here, not even root
    assert (await metered(chat, recorder=tape).complete(request("one"))).text == "paid for"
    with pytest.raises(OutputFailed, match=r"a\.jsonl cannot be written"):
        tape.close()
    assert list(path.parent.iterdir()) == [path]


async def test_a_stage_that_was_never_recorded_is_reported(tmp_path: Path) -> None:
    await recorded(tmp_path / "a.jsonl", "one")
    with pytest.raises(
        UsageError, match=r"this judge request: no such request was recorded .*window"
    ):
        await Replayer(tmp_path / "a.jsonl").complete(request("one", stage="judge"))
    await recorded(tmp_path / "empty.jsonl")
    with pytest.raises(UsageError, match="no request at all"):
        await Replayer(tmp_path / "empty.jsonl").complete(request("one"))


async def test_a_file_that_is_not_a_cassette_is_refused(tmp_path: Path) -> None:
    for text in ("", "{}", '{"cassette": 99, "model": "m"}', '{"cassette": 1, "model": "m"}\n[]'):
        (tmp_path / "a.jsonl").write_text(text)
        with pytest.raises(UsageError, match=r"a\.jsonl is not a cassette"):
            Replayer(tmp_path / "a.jsonl")
    with pytest.raises(UsageError, match="is not a cassette"):
        Replayer(tmp_path / "gone")
    with pytest.raises(UsageError, match="cannot be written"):
        Recorder(tmp_path / "no" / "folder", "m")
    with pytest.raises(UsageError, match="is not a cassette"):
        Recorder(tmp_path / "a.jsonl", "m")
    assert (tmp_path / "a.jsonl").read_text() == text, "a file of the user's is left alone"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            '"reply to one"',
            "5",
            "line 2 is not an exchange: reply: text: Input should be a valid string",
        ),
        ('"text": ', '"words": ', "line 2 is not an exchange: reply: text: Field required"),
        ('"request"', '"asked"', "line 2 is not an exchange: request: Field required"),
        ('"cassette"', '"tape"', "it does not begin like a cassette"),
    ],
)
async def test_damage_is_named_with_its_place(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    path = tmp_path / "a.jsonl"
    await recorded(path, "one")
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UsageError, match=words):
        Replayer(path)


FORGED: dict[str, tuple[tuple[str, ...], Any]] = {
    "nested too deep": (("request", "schema"), "NESTED"),
    "tokens below 0": (("reply", "tokens_in"), -5),
    "tokens that are not a number": (("reply", "tokens_out"), True),
    "a stage that is no name": (("request", "stage"), ["extract"]),
    "a schema that is none": (("request", "schema"), "x"),
    "a temperature that is none": (("request", "temperature"), "hot"),
    "a number without an end": (("request", "top_p"), 10**5000),
    "a role that is none": (("request", "messages"), [["tool", "x"]]),
    "a model that is none": (("model",), {"m": 1}),
    "a field too many": (("reply", "parsed"), "x"),
}


@pytest.mark.parametrize("kind", FORGED)
async def test_a_forged_cassette_is_refused_in_one_line_and_not_changed(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "a.jsonl"
    await recorded(path, "one")
    heading, line = path.read_text().splitlines()
    place, value = FORGED[kind]
    part = whole = json.loads(line)
    for name in place[:-1]:
        part = part[name]
    part[place[-1]] = value
    sys.set_int_max_str_digits(0)
    forged = json.dumps(whole).replace('"NESTED"', '{"a":' * 9000 + "1" + "}" * 9000)
    sys.set_int_max_str_digits(4300)
    path.write_text(f"{heading}\n{forged}\n")
    before = path.read_bytes()
    for opening in (lambda: Replayer(path), lambda: Recorder(path, "m")):
        with pytest.raises(UsageError, match="line 2 is not an exchange") as refused:
            opening()
        assert len(str(refused.value).splitlines()) == 1
        assert len(str(refused.value)) < 400
    assert path.read_bytes() == before
    path.write_text("[" * 100_000)
    with pytest.raises(UsageError, match="does not begin like a cassette"):
        Replayer(path)


async def test_a_recording_follows_no_link_beside_it(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    for name in ("a.jsonl.new", ".a.jsonl.new", "a.jsonl.part"):
        (tmp_path / name).symlink_to(mine)
    await recorded(tmp_path / "a.jsonl", "one")
    assert mine.read_text() == "mine"
    assert len(os.listdir(tmp_path)) == 5, "nothing of the writing is left"


async def test_half_a_surrogate_pair_in_a_reply_leaves_a_cassette_that_can_be_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.jsonl"
    with Recorder(path, "m") as recorder:
        chat = ScriptedModel("a \ud800 b", name="m")
        await metered(chat, recorder=recorder).complete(request("one"))
    assert (await Replayer(path).complete(request("one"))).text == "a ? b"


async def test_a_cassette_is_added_to(tmp_path: Path) -> None:
    await recorded(tmp_path / "a.jsonl", "one")
    await recorded(tmp_path / "a.jsonl", "two")
    player = Replayer(tmp_path / "a.jsonl")
    for text in ("one", "two"):
        reply = await player.complete(request(text, schema={"type": "object"}))
        assert reply.text == f"reply to {text}"


async def test_two_runs_that_record_to_one_cassette_at_once_both_are_in_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with Recorder(path, "m") as first:
        await metered(ScriptedModel("1", name="m"), recorder=first).complete(request("one"))
        with Recorder(path, "m") as second:
            await metered(ScriptedModel("2", name="m"), recorder=second).complete(request("two"))
            await metered(ScriptedModel("3", name="m"), recorder=first).complete(request("three"))
    player = Replayer(path)
    found = [(await player.complete(request(text))).text for text in ("one", "two", "three")]
    assert found == ["1", "2", "3"]


async def test_a_cassette_knows_which_model_answered_which_stage(tmp_path: Path) -> None:
    cheap, dear = ScriptedModel("read", name="cheap"), ScriptedModel("judged", name="dear")
    with Recorder(tmp_path / "a.jsonl", "dear+cheap") as recorder:
        recording = metered(dear, cheap, recorder=recorder)
        await recording.complete(request("one", stage="extract"))
        await recording.complete(request("two", stage="judge"))
    player = Replayer(tmp_path / "a.jsonl")
    assert player.model_for("extract") == "cheap"
    assert player.model_for("judge") == "dear"
    assert set(player.models) == {"cheap", "dear"}


# --- endpoints -----------------------------------------------------------------------------------


def test_the_chat_models_key_goes_to_no_other_server() -> None:
    chat = Settings(base_url="http://a:1/v1", api_key=Secret("k"))
    assert embedding_endpoint(chat).key == Secret("k")
    apart = chat.with_(embed_base_url="http://b:2/v1")
    assert embedding_endpoint(apart).host == "b:2"
    assert not embedding_endpoint(apart).key
    assert embedding_endpoint(apart.with_(embed_api_key=Secret("e"))).key == Secret("e")
    assert endpoint(apart).host == "a:1"


@pytest.mark.parametrize(
    "url", ["nonsense", "ftp://host/v1", "http://", "http://[::1", "http://a b/v1", "http://a/\nv1"]
)
def test_an_invalid_base_url_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="base URL"):
        endpoint(Settings(base_url=url))


@pytest.mark.parametrize("key", ["schlüssel", "sk-1\nX: y", "sk\x01", "sk-\udc80"])
def test_a_key_that_can_be_none_is_refused_before_it_is_sent_and_not_shown(key: str) -> None:
    with pytest.raises(MissingError, match="key for h:1") as refused:
        endpoint(Settings(base_url="http://h:1/v1", api_key=Secret(key)))
    assert key not in str(refused.value)


def test_a_copied_line_end_changes_nothing() -> None:
    where = endpoint(Settings(base_url=" http://h:1/v1\r\n", api_key=Secret("sk-1\r\n")))
    assert (where.url, where.key) == ("http://h:1/v1", Secret("sk-1"))


def test_messages_hold_neither_key_nor_mark_up() -> None:
    where = endpoint(Settings(base_url="http://u:pass@h/v1", api_key=Secret("sk-1")))
    assert where.clean("key sk-1\nis  wrong") == "key *** is wrong"
    assert where.clean("<html><body><p>Bad</p> gateway</body></html>") == "Bad gateway"
    assert "u:pass" not in where.url + where.address + where.host
    assert where.token == Secret("dTpwYXNz")
    assert where.clean("no user pass here") == "no user *** here"
