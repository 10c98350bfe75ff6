"""`qrmem chat`: it stores a log, and recalls the turns that a prompt needs."""

import json
from collections.abc import Mapping, Sequence

import pytest
from e2e.conftest import Shell

LOG = [
    {"role": "user", "content": "The flight to Oslo leaves on 3 May.", "at": "2026-04-01T09:00"},
    {"role": "assistant", "content": "Noted.", "at": "2026-04-01T09:01"},
    {"role": "user", "content": "Actually the flight to Oslo moved to 5 May.", "name": "Ann"},
    *({"role": "user", "content": f"Soup number {n}?"} for n in range(25)),
]


def lines(messages: Sequence[Mapping[str, object]]) -> str:
    return "\n".join(json.dumps(message) for message in messages) + "\n"


def test_a_log_is_kept_and_recalled(qrmem: Shell) -> None:
    qrmem.write("log.jsonl", lines(LOG))
    assert qrmem("chat", "add", "log.jsonl", "--session", "trip").out == "28 turns kept\n"
    ran = qrmem("chat", "recall", "When does the flight to Oslo leave?", "--session", "trip")
    assert ran.code == 0
    said = ran.out.splitlines()[1]
    assert said.strip() == "[trip, 2026-04-01 09:00] user: The flight to Oslo leaves on 3 May."
    assert ran.out.count("Ann: Actually the flight to Oslo moved to 5 May.") == 1
    found = qrmem("chat", "recall", "Oslo?", "--session", "trip", "--tokens", "60", "--json").json
    assert 0 < found["tokens"] <= 60
    found = qrmem("chat", "recall", "Oslo?", "--session", "trip", "--json").json
    assert "[2026-04-01T09:00:00] user: The flight to Oslo leaves on 3 May." in found["text"]
    assert found["messages"][-1]["content"].endswith("] Soup number 24?")
    qrmem.write("dated.jsonl", lines([*LOG[:2], {**LOG[2], "at": "2026-04-02"}]))
    qrmem("chat", "add", "dated.jsonl", "--session", "dated")
    recall = ("chat", "recall", "Oslo?", "--session", "dated")
    assert "moved to 5 May" in qrmem(*recall).out
    then = qrmem(*recall, "--as-of", "2026-04-01").out
    assert "leaves on 3 May" in then
    assert "moved to 5 May" not in then
    ask = (
        "ask",
        "Oslo?",
        "--where",
        "chat=dated",
        "--strategy",
        "fragment",
        "--as-of",
        "2026-04-01",
    )
    assert "moved to 5 May" not in qrmem(*ask).out


def test_a_log_that_has_grown_adds_what_is_new(qrmem: Shell) -> None:
    qrmem.write("log.jsonl", lines(LOG[:3]))
    qrmem("chat", "add", "log.jsonl")
    qrmem.write("log.jsonl", lines(LOG[:5]))
    assert qrmem("chat", "add", "log.jsonl").out.startswith("2 turns kept; 3 already there")
    assert qrmem("chat", "say", "user", "Bye.", "--speaker", "Bo").code == 0
    said = [line.split("] ", 1)[1] for line in qrmem("chat", "turns").out.splitlines()]
    assert said[2:] == [
        "Ann: Actually the flight to Oslo moved to 5 May.",
        "user: Soup number 0?",
        "user: Soup number 1?",
        "Bo: Bye.",
    ]


@pytest.mark.parametrize("form", [LOG[:2], {"messages": LOG[:2]}])
def test_a_list_of_messages_is_taken_from_standard_input(qrmem: Shell, form: object) -> None:
    ran = qrmem("chat", "add", "-", "--json", stdin=json.dumps(form).encode())
    assert len(ran.json["added"]) == 2


def test_a_log_without_times_is_told_that_it_counts_as_said_now(qrmem: Shell) -> None:
    untimed = [{"role": "user", "content": f"We meet at {place} on 15 April."} for place in "AB"]
    qrmem.write("log.jsonl", lines(untimed[:1]))
    assert "without a time count as said now; --at TIME" in qrmem("chat", "add", "log.jsonl").err
    assert "without a time" not in qrmem("chat", "add", "log.jsonl").err  # nothing was kept
    qrmem.write("log.jsonl", lines(untimed[1:]))
    assert "without a time" not in qrmem("chat", "add", "log.jsonl", "--at", "2024-04-01").err
    qrmem.write("log.jsonl", lines(LOG[:2]))
    assert "without a time" not in qrmem("chat", "add", "log.jsonl").err


def test_a_bad_line_does_not_cost_the_others(qrmem: Shell) -> None:
    qrmem.write("log.jsonl", lines(LOG[:2]) + '{"role": "user", "conte\n' + lines(LOG[2:4]))
    ran = qrmem("chat", "add", "log.jsonl")
    assert (ran.code, ran.out) == (1, "4 turns kept\n")
    assert "left out: log.jsonl, line 3 is not JSON" in ran.err


def test_a_message_without_words_or_of_no_form_does_not_cost_the_log(qrmem: Shell) -> None:
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "f"}}]}
    image = {"role": "user", "content": [{"type": "image_url"}, {"type": "text", "text": "See."}]}
    broken = [{"role": "user"}, {"role": " ", "content": "x"}, 7, ["a"]]
    ran = qrmem("chat", "add", "-", stdin=json.dumps([call, *broken, image, *LOG[:2]]).encode())
    assert (ran.code, ran.out) == (1, "3 turns kept; 1 already there, or empty\n")
    assert [f"message {n}" in ran.err for n in range(1, 8)] == [False, *[True] * 4, False, False]
    text = json.dumps({"role": "user", "content": "a\u2028b"}, ensure_ascii=False)
    deep = "[" * 100_000
    ran = qrmem("chat", "add", "-", stdin=f"{text}\n{deep}\n{text}".encode())
    assert (ran.code, ran.out) == (1, "2 turns kept\n")
    assert "line 2 is nested too deeply" in ran.err


def test_recall_says_that_nothing_is_kept_yet(qrmem: Shell) -> None:
    qrmem("chat", "say", "user", "The flight leaves on 3 May.", "--user", "ann")
    qrmem("chat", "forget-user", "ann", "--yes")
    ran = qrmem("chat", "recall", "When?")
    assert (ran.code, ran.out) == (0, "nothing kept yet\n")
    qrmem("delete", "--all", "--yes")
    ran = qrmem("chat", "recall", "When?")
    assert (ran.code, ran.out) == (0, "nothing kept yet\n")


def test_a_message_with_an_odd_time_is_kept_without_one_and_told(qrmem: Shell) -> None:
    odd = {"role": "user", "content": "The ferry to Oslo is late.", "at": "last noon"}
    qrmem.write("log.jsonl", lines([LOG[0], odd, LOG[1]]))
    ran = qrmem("chat", "add", "log.jsonl")
    assert (ran.code, ran.out) == (0, "3 turns kept\n")
    assert "cannot be read, so they have none: 'last noon' (1 message)" in ran.err
    assert "without a time count as said now" not in ran.err
    assert [turn["at"] for turn in qrmem("chat", "turns", "--json").json] == [
        "2026-04-01T09:00:00",
        "",
        "2026-04-01T09:01:00",
    ]
    assert qrmem("chat", "add", "log.jsonl").out.startswith("0 turns kept")
    recalled = qrmem("chat", "recall", "ferry to Oslo", "--session", "new", "--json").json
    assert "[no time] user: The ferry to Oslo is late." in recalled["text"]
    qrmem("chat", "add", "log.jsonl", "--session", "dated", "--at", "2026-04-01")
    turns = qrmem("chat", "turns", "--session", "dated", "--json").json
    assert turns[1]["at"] == "2026-04-01T00:00:00"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{bad", "line 1 is not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b"3", "no list of messages"),
        (b'{"role": "user"}', "a message is"),
        (b'{"title": "Trip", "mapping": {}}', "not one with 'title', 'mapping'"),
    ],
)
def test_a_file_that_is_not_a_log_is_refused(qrmem: Shell, content: bytes, says: str) -> None:
    ran = qrmem("chat", "add", "-", stdin=content)
    assert ran.code == 2
    assert says in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty: it contains no message"),
        (b" \n", "is empty: it contains no message"),
        (b"[]", "is empty: it contains no message"),
        (b'{"messages": []}', "is empty: it contains no message"),
        (b'{"role": "user", "content": " "}', "is empty: no message in it has a text"),
    ],
)
def test_a_log_of_no_turn_is_refused_and_leaves_no_memory(
    qrmem: Shell, content: bytes, says: str
) -> None:
    qrmem.write("empty.txt", content)
    ran = qrmem("chat", "add", "empty.txt")
    assert (ran.code, ran.out) == (2, "")
    assert f"empty.txt {says}" in ran.err
    assert [path.name for path in qrmem.folder.iterdir()] == ["empty.txt"]


def test_a_log_that_is_kept_already_is_no_error(qrmem: Shell) -> None:
    qrmem.write("log.jsonl", lines(LOG[:2]))
    assert qrmem("chat", "add", "log.jsonl").code == 0
    ran = qrmem("chat", "add", "log.jsonl")
    assert (ran.code, ran.out) == (0, "0 turns kept; 2 already there, or empty\n")


def test_a_time_is_shown_with_its_zone(qrmem: Shell) -> None:
    for at in ("2026-04-01T09:00", "2026-04-01T09:00Z", "2026-04-01T09:00-05:30"):
        qrmem("chat", "say", "user", "Hello.", "--at", at)
    assert qrmem("chat", "turns").out.splitlines() == [
        "[2026-04-01 09:00] user: Hello.",
        "[2026-04-01 09:00 UTC] user: Hello.",
        "[2026-04-01 09:00-05:30] user: Hello.",
    ]


def test_the_found_part_of_a_long_turn_is_printed_whole(qrmem: Shell) -> None:
    detail = "The sauna " + "with its old and slow stove " * 14 + "needs a residual-current device."
    qrmem.write("long.jsonl", lines([{"role": "assistant", "content": detail}, *LOG[3:]]))
    qrmem("chat", "add", "long.jsonl", "--session", "house")
    prompt = "Does the sauna need a residual-current device?"
    assert detail in qrmem("chat", "recall", prompt, "--session", "house").out


def test_each_user_is_kept_recalled_listed_and_forgotten_separately(qrmem: Shell) -> None:
    qrmem("chat", "say", "user", "My boat is called Nell.", "--user", "ann")
    qrmem.write("ben.jsonl", lines([{"role": "user", "content": "My boat is called Brig."}]))
    qrmem("chat", "add", "ben.jsonl", "--user", "ben")
    recalled = qrmem("chat", "recall", "What is my boat called?", "--user", "ben").out
    assert "Brig" in recalled
    assert "Nell" not in recalled
    assert "Nell" in qrmem("chat", "turns", "--user", "ann").out
    refused = qrmem("chat", "forget-user", "ben")
    assert (refused.code, "chat forget-user needs --yes" in refused.err) == (2, True)
    assert qrmem("chat", "forget-user", "ben", "--yes").out == "1 document of ben deleted\n"
    assert "Brig" not in qrmem("chat", "turns").out


def test_time_words_are_shown_with_the_days_that_they_mean(qrmem: Shell) -> None:
    said = {"role": "user", "content": "I saw Clara yesterday.", "at": "2026-04-02T09:00"}
    qrmem.write("log.jsonl", lines([said]))
    qrmem("chat", "add", "log.jsonl")
    recalled = qrmem("chat", "recall", "When did I see Clara?", "--session", "new").out
    assert "yesterday: 2026-04-01" in recalled


def test_an_error_about_a_misspelled_session_or_namespace_lists_the_existing_ones(
    qrmem: Shell,
) -> None:
    qrmem("chat", "say", "user", "The flight leaves on 3 May.", "--session", "trip")
    missed = qrmem("chat", "turns", "--session", "tripp")
    said = "there is no session 'tripp'; there are: trip\n"
    assert (missed.code, missed.out) == (0, said)
    for words in (("turns",), ("recall", "When?")):
        ran = qrmem("chat", *words, "--namespace", "other")
        assert (ran.code, "no namespace 'other'" in ran.err) == (2, True)
        assert "there are: default" in ran.err
    for words in (("trail",), ("trail", "--list")):
        ran = qrmem(*words, "--namespace", "other")
        assert (ran.code, "there are: default" in ran.err) == (2, True)
    assert qrmem("trail", "--list").out == "no trail yet\n"


def test_a_warning_names_a_limit_that_no_turn_fits(qrmem: Shell) -> None:
    qrmem("chat", "say", "user", "The flight to Oslo leaves on 3 May, in the morning.")
    ran = qrmem("chat", "recall", "When?", "--tokens", "2")
    assert (ran.code, ran.out) == (0, "nothing to recall (limit: 2 tokens)\n")


@pytest.mark.parametrize(
    ("name", "when"),
    [
        ("session", {"created_at": "2023-05-03T09:00:00Z"}),
        ("session_id", {"timestamp": 1683104400}),
        ("thread_id", {"createdAt": 1683104400123}),
        ("conversationId", {"ts": "1683104400.000200"}),
        ("session", {"date": "2023-05-03", "time": "09:00:00+00:00"}),
        ("chat_id", {"datetime": "2023-05-03 09:00+00:00"}),
    ],
)
def test_a_log_brings_its_times_and_sessions_by_their_usual_names(
    qrmem: Shell, name: str, when: dict[str, object]
) -> None:
    said = [{"role": "user", "content": f"Trip {n}.", name: f"s{n % 2}", **when} for n in range(4)]
    ran = qrmem("chat", "add", "-", stdin=lines(said).encode())
    assert (ran.code, ran.err) == (0, "")
    turns = qrmem("chat", "turns", "--json").json
    assert {turn["at"] for turn in turns} == {"2023-05-03T09:00:00+00:00"}
    assert [turn["session"] for turn in turns] == ["s0", "s1", "s0", "s1"]
    grown = [*said, {"role": "user", "content": "Back.", name: "s0", **when}]
    ran = qrmem("chat", "add", "-", stdin=lines(grown).encode())
    assert ran.out == "1 turn kept; 4 already there, or empty\n"
    assert [turn["text"] for turn in qrmem("chat", "turns", "--json").json][-1:] == ["Back."]
    ran = qrmem("chat", "add", "-", "--session", "mine", stdin=lines(said).encode())
    assert len(qrmem("chat", "turns", "--session", "mine", "--json").json) == 4


def test_a_time_and_a_session_of_a_whole_log_count_for_messages_without_any(qrmem: Shell) -> None:
    own = {"content": "b", "role": "user", "at": "2024-01-01T00:00", "session": "other"}
    log = {
        "session_id": "trip",
        "timestamp": "2023-05-03",
        "messages": [{"role": "user", "content": "a"}, own],
    }
    assert qrmem("chat", "add", "-", stdin=json.dumps(log).encode()).code == 0
    turns = qrmem("chat", "turns", "--json").json
    assert [(turn["session"], turn["at"][:10]) for turn in turns] == [
        ("trip", "2023-05-03"),
        ("other", "2024-01-01"),
    ]


def test_an_empty_value_hides_no_other_of_the_same_meaning(qrmem: Shell) -> None:
    messages = [
        {"role": "user", "content": "", "text": "My hint is tea.", "at": "", "ts": 1700000000},
        {"role": "user", "content": "I row.", "timestamp": 0, "created_at": "2024-05-01T10:00"},
        {"role": "user", "content": "I swim.", "session": "", "thread_id": "t9", "session_id": 0},
        {"role": "user", "content": "I run.", "name": "", "speaker": "Ann", "session": ["a"]},
        {"role": "user", "content": "I sail.", "name": "", "speaker": "Ann"},
    ]
    ran = qrmem("chat", "add", "-", stdin=json.dumps(messages).encode())
    assert (ran.code, ran.out) == (1, "4 turns kept\n")
    assert "a session is a name, not list" in ran.err
    hint, rows, swims, sails = qrmem("chat", "turns", "--json").json
    assert (hint["text"], hint["at"][:4]) == ("My hint is tea.", "2023")
    assert rows["at"][:10] == "2024-05-01"
    assert swims["session"] == "0"
    assert sails["speaker"] == "Ann"


def test_a_log_without_a_user_does_not_count_as_a_users_turns(qrmem: Shell) -> None:
    said = {"role": "user", "content": "Good morning."}
    first = ("chat", "add", "-", "--session", "s")
    assert qrmem(*first, "--user", "ann", stdin=json.dumps([said]).encode()).code == 0
    ran = qrmem(*first, stdin=json.dumps([said]).encode())
    assert (ran.code, ran.out) == (0, "1 turn kept\n")


def test_keys_of_messages_that_are_not_kept_are_named(qrmem: Shell) -> None:
    said = [
        {"role": "user", "content": "a", "id": 1, "model": "m", "mood": None},
        {"role": "user", "content": "b", "model": "m", "likes": 3},
    ]
    ran = qrmem("chat", "add", "-", "--at", "2026-05-01", stdin=lines(said).encode())
    assert (ran.code, ran.out) == (0, "2 turns kept\n")
    assert "not kept: model (2 messages), likes (1 message)" in ran.err
    assert ran.err.count("\n") == 1
    bad = {"role": "user", "content": "c", "date": "yesterday"}
    ran = qrmem("chat", "add", "-", stdin=lines([*said, bad]).encode())
    assert ran.code == 0
    assert "so they have none: 'yesterday' (1 message)" in ran.err


def test_a_list_has_a_line_for_each_conversation_and_each_turn_if_asked(qrmem: Shell) -> None:
    qrmem("add", "-", "--id", "note", stdin=b"Ann met Bob in Rome.")
    said = [
        {"role": "user", "content": f"Stage {n}.", "at": f"2026-05-{n % 9 + 1:02}T09:00"}
        for n in range(12)
    ]
    qrmem("chat", "add", "-", "--session", "trip", "--user", "ann", stdin=lines(said).encode())
    qrmem("chat", "say", "user", "Hello.", "--at", "2026-06-01T09:00")
    assert qrmem("list").out.splitlines() == [
        "namespaces: default",
        "note  standard input  20 characters, segments: 1 ok",
        "conversation without a name  1 turn, 2026-06-01, segments: 1 ok",
        "conversation 'trip' of ann  12 turns, 2026-05-01 to 2026-05-09, segments: 12 ok",
        "`qrmem list --turns` lists each turn",
    ]
    shown = qrmem("list", "--turns").out
    assert len(shown.splitlines()) == 15
    assert "turn-00000012" in shown
    assert len(qrmem("list", "--json").json["documents"]) == 14


def test_a_wish_is_kept_by_hand_and_listed(qrmem: Shell) -> None:
    assert qrmem("chat", "say", "user", "Prices are in kroner.", "--standing").code == 0
    qrmem("chat", "say", "user", "The ferry leaves at noon.")
    (wish,) = qrmem("chat", "standing", "--json").json
    assert (wish["text"], wish["standing"]) == ("Prices are in kroner.", True)
