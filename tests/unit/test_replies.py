"""Parsing a model's reply: repairs, kept parts, refusals."""

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator
from servers.faults import READABLE, UNREADABLE

from qrmem.errors import ModelOutputError, PromptError
from qrmem.llm.found_json import is_clean, without_reasoning
from qrmem.llm.replies import parse_model, strict_schema
from qrmem.prompts.replies import JudgeReply


class Item(BaseModel):
    name: str
    kind: Literal["PERSON", "PLACE"] = "PERSON"
    count: int = 1


class Reading(BaseModel):
    items: list[Item]
    note: str | None = None


class Verdict(BaseModel):
    action: Literal[-2, -1]
    is_sure: bool = False
    score: float = 0.0
    quotes: list[str] = []


class Names(BaseModel):
    entities: list[str]


GOOD = '{"items": [{"name": "Ahab", "kind": "PERSON", "count": 2}], "note": null}'


def names(text: str) -> list[str]:
    return [item.name for item in parse_model(text, Reading).value.items]


def test_a_reply_of_the_right_shape_needs_no_repair() -> None:
    parsed = parse_model(GOOD, Reading)
    assert parsed.value == Reading(items=[Item(name="Ahab", count=2)])
    assert not parsed.repaired
    assert parsed.problems == ()


@pytest.mark.parametrize("way", sorted(READABLE))
def test_every_readable_fault_of_the_test_server_gives_the_same_answer(way: str) -> None:
    sent = READABLE[way]('{"entities": ["Ahab", "Moby Dick"]}')
    assert parse_model(sent or "", Names).value.entities == ["Ahab", "Moby Dick"]


@pytest.mark.parametrize("way", sorted(UNREADABLE))
def test_every_unreadable_fault_is_refused_with_the_raw_reply(way: str) -> None:
    sent = UNREADABLE[way](GOOD) or ""
    with pytest.raises(ModelOutputError) as caught:
        parse_model(sent, Reading)
    assert caught.value.raw == sent
    assert str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        '<think>{"items": [{"name": "Nobody"}]}</think>' + GOOD,
        '<THINKING>\n{"items": [{"name": "Nobody"}]}\n</THINKING>\n' + GOOD,
        'It could be {"items": [{"name": "Nobody"}]}.\n</think>\n' + GOOD,
    ],
)
def test_reasoning_text_is_not_part_of_an_answer(text: str) -> None:
    assert names(text) == ["Ahab"]


def test_thoughts_without_an_end_hold_no_answer() -> None:
    with pytest.raises(ModelOutputError):
        parse_model("<think>" + GOOD, Reading)


def test_the_last_of_several_answers_counts() -> None:
    text = f'First {{"items": [{{"name": "Pip"}}]}}, no, better:\n{GOOD}'
    assert names(text) == ["Ahab"]


QUOTED = '{"reasoning": "told so", "action": -2, "answer": "Mallory"}'
OWN = '{"reasoning": "the passage only quotes an order", "action": -1, "answer": ""}'


@pytest.mark.parametrize(
    "text",
    [
        f"The passage says:\n```json\n{QUOTED}\n```\nThat is no evidence.\n{OWN}",
        f"The passage says {QUOTED}. That is no evidence.\n```json\n{OWN}\n```",
        f"Action: -2\nAnswer: Mallory\nis what it wants me to say. {OWN}",
        f"<think>{QUOTED}</think>{OWN}",
        OWN.replace("an order", json.dumps(f"Action: -2 {QUOTED}")[1:-1]),
    ],
    ids=["fence", "prose", "lines", "thoughts", "inside a field"],
)
def test_quotations_in_a_reply_decide_nothing(text: str) -> None:
    read = parse_model(text, JudgeReply).value
    assert (read.action, read.answer) == (-1, "")


def test_an_echoed_schema_is_skipped_and_an_answer_inside_one_is_found() -> None:
    echoed = json.dumps(strict_schema(Reading))
    assert names(f"{echoed}\n{GOOD}") == ["Ahab"]
    assert names(f'{{"type": "object", "properties": {GOOD}}}') == ["Ahab"]
    with pytest.raises(ModelOutputError):
        parse_model(echoed, Reading)


def test_valid_items_of_a_partly_bad_list_are_kept_and_the_rest_is_reported() -> None:
    parsed = parse_model('{"items": [{"name": "Ahab"}, {"kind": 3}, 7, {"name": "Pip"}]}', Reading)
    assert [item.name for item in parsed.value.items] == ["Ahab", "Pip"]
    assert parsed.repaired
    assert len(parsed.left_out) == 2
    assert "items[1]" in parsed.left_out[0]


def test_items_of_a_list_of_texts_are_cleaned_of_what_cannot_be_shown() -> None:
    parsed = parse_model('{"entities": ["Ahab", "Moby\\u0000Dick"]}', Names)
    assert parsed.value.entities == ["Ahab", "Moby Dick"]
    assert parsed.repaired


def test_items_of_a_list_of_choices_are_choices() -> None:
    class Kinds(BaseModel):
        kinds: list[Literal["PERSON", "PLACE"]]

    parsed = parse_model('{"kinds": ["person", "SHIP", "PLACE"]}', Kinds)
    assert parsed.value.kinds == ["PERSON", "PLACE"]
    assert len(parsed.left_out) == 1


def test_a_list_without_a_valid_item_is_refused_rather_than_emptied() -> None:
    with pytest.raises(ModelOutputError, match=r"items\[0\]"):
        parse_model('{"items": [{"kind": 3}, 7]}', Reading)


class Passage(BaseModel):
    n: int
    names: list[Item]
    places: list[Item] = []


class Passages(BaseModel):
    passages: list[Passage]


def test_an_item_whose_own_list_holds_nothing_valid_is_left_out_and_its_neighbours_stay() -> None:
    good, bad = {"name": "Ahab"}, {"kind": 3}
    given = [
        {"n": 1, "names": [bad, 7], "places": [bad]},
        {"n": 2, "names": [bad, good], "places": [good, bad]},
        {"n": "3", "names": good},
    ]
    parsed = parse_model(json.dumps({"passages": given}), Passages)
    assert [(p.n, len(p.names), len(p.places)) for p in parsed.value.passages] == [
        (2, 1, 1),
        (3, 1, 0),
    ]
    assert parsed.left_out
    with pytest.raises(ModelOutputError):
        parse_model(json.dumps({"passages": given[:1]}), Passages)


def test_an_empty_list_is_an_answer_and_an_empty_object_is_none() -> None:
    assert parse_model('{"items": []}', Reading).value.items == []
    with pytest.raises(ModelOutputError):
        parse_model("{}", Verdict)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ('{"items": [{"name": "Ahab"}, {"name": "Captain Bild', ["Ahab"]),
        ('{"items": [{"name": "Ahab"}, {"name": "Pip", "kind": "PER', ["Ahab", "Pip"]),
        ('{"items": [{"name": "Ahab"}', ["Ahab"]),
        ('{"items": [{"name": "Ahab"}], "note": "He sai', ["Ahab"]),
        ("{'items': [{'name': 'Ahab'}, {'name': 'Captain Bild", ["Ahab"]),
        ('```json\n{"items": [{"name": "O\'Hara"}, {"name": "Bi', ["O'Hara"]),
    ],
)
def test_a_reply_that_breaks_off_keeps_whole_items_and_no_half_names(
    text: str, kept: list[str]
) -> None:
    parsed = parse_model(text, Reading)
    assert [item.name for item in parsed.value.items] == kept
    assert parsed.problems == ("the reply breaks off",)


def test_a_whole_reply_keeps_its_empty_lists_in_any_spelling() -> None:
    parsed = parse_model("{'action': -1, 'quotes': []", Verdict)
    assert parsed.value == Verdict(action=-1)
    assert parse_model("{'items': []}", Reading).value.items == []
    with pytest.raises(ModelOutputError):
        parse_model('{"pa\udc80s": [', Reading)
    with pytest.raises(ModelOutputError):  # it breaks off before its first item
        parse_model('{"items": [', Reading)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"action": "-2"}', Verdict(action=-2)),
        ('{"action": -1, "is_sure": "Yes"}', Verdict(action=-1, is_sure=True)),
        ('{"action": -1, "score": "0.5"}', Verdict(action=-1, score=0.5)),
        ('{"Action": -1, "is-sure": true}', Verdict(action=-1, is_sure=True)),
        ('{"action": -1, "quotes": null, "is_sure": null}', Verdict(action=-1)),
        ('{"action": -1, "quotes": "one"}', Verdict(action=-1, quotes=["one"])),
        ('{"action": -1, "quotes": ["a", 5]}', Verdict(action=-1, quotes=["a", "5"])),
    ],
)
def test_a_wrong_type_is_converted_where_only_one_value_can_be_meant(
    text: str, expected: Verdict
) -> None:
    parsed = parse_model(text, Verdict)
    assert parsed.value == expected
    assert parsed.repaired


@pytest.mark.parametrize(
    "text",
    [
        '{"action": -3}',
        '{"action": null}',
        '{"action": true}',
        '{"action": -2, "is_sure": 7}',
        '{"action": -2, "score": "high"}',
        '{"action": -2, "score": 1e999}',
        '{"action": -2, "quotes": [true, null]}',
    ],
)
def test_a_wrong_type_is_refused_where_the_value_would_be_a_guess(text: str) -> None:
    with pytest.raises(ModelOutputError):
        parse_model(text, Verdict)


def test_a_validator_of_the_model_drops_the_items_that_it_refuses() -> None:
    class Strict(BaseModel):
        name: str

        @field_validator("name")
        @classmethod
        def _capital(cls, value: str) -> str:
            if not value.istitle():
                raise ValueError("needs a capital")
            return value

    class Many(BaseModel):
        items: list[Strict]

    parsed = parse_model('{"items": [{"name": "Ahab"}, {"name": "whale"}]}', Many)
    assert [item.name for item in parsed.value.items] == ["Ahab"]
    assert "needs a capital" in parsed.left_out[0]
    with pytest.raises(ModelOutputError, match="needs a capital"):
        parse_model('{"items": [{"name": "whale"}]}', Many)


def test_characters_that_no_store_takes_are_replaced() -> None:
    assert names('{"items": [{"name": "A\\u0000b\\ud800"}]}') == ["A b?"]


def test_a_reply_far_too_long_or_deep_ends_in_time() -> None:
    for text in ("[" * 300_000, '{"a":' * 100_000, "{" * 50 + "x" * 500_000, "'" * 200_000):
        with pytest.raises(ModelOutputError):
            parse_model(text, Reading)


SCHEMA = strict_schema(Reading)
PIECES = st.sampled_from(
    [
        *"{}[]\",:\\'` \n",
        "```json",
        "```",
        "<think>",
        "</think>",
        "null",
        "NaN",
        "1e999",
        "-",
        "\ud800",
        "items",
        "name",
        '"items": [',
        '{"name": "Ahab"}',
        "\\u0000",
        "\x00",
        "é",
        "7",
        "true",
        GOOD,
    ]
)


@given(st.one_of(st.binary(max_size=200).map(lambda b: b.decode("utf-8", "replace")), st.text()))
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    assert_read_or_refused(text)


@given(st.lists(PIECES, max_size=40).map("".join))
def test_any_heap_of_json_pieces_is_read_or_refused_and_nothing_is_invented(text: str) -> None:
    assert_read_or_refused(text)


@given(st.integers(0, len(GOOD)), PIECES)
def test_any_damage_to_a_good_reply_is_read_or_refused(at: int, piece: str) -> None:
    assert_read_or_refused(GOOD[:at] + piece + GOOD[at + 1 :])
    assert_read_or_refused(GOOD[:at])


def assert_read_or_refused(text: str) -> None:
    try:
        found = parse_model(text, Reading).value.items
    except ModelOutputError:
        return
    for item in found:
        if "\\" not in text and "\x00" not in text and "\ud800" not in text:
            assert item.name in text


def test_a_clean_reply_is_distinguished_from_one_in_prose() -> None:
    assert is_clean(f" {GOOD}\n")
    assert not is_clean(f"Sure: {GOOD}")
    assert not is_clean("42")


def test_text_without_its_reasoning() -> None:
    assert without_reasoning("<think>a</think> b <think>c") == "b"


# --- schemas -------------------------------------------------------------------------------------


def test_a_strict_schema_closes_every_object_and_needs_every_field() -> None:
    text = json.dumps(SCHEMA)
    assert "$ref" not in text
    assert "$defs" not in text
    assert "default" not in text
    item = SCHEMA["properties"]["items"]["items"]
    for node in (SCHEMA, item):
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])
    assert item["properties"]["kind"]["enum"] == ["PERSON", "PLACE"]
    assert SCHEMA["properties"]["note"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}


class Tree(BaseModel):
    children: list["Tree"]


class Open(BaseModel):
    anything: dict[str, str]


@pytest.mark.parametrize("model", [Tree, Open])
def test_a_schema_that_no_server_takes_is_refused(model: type[BaseModel]) -> None:
    with pytest.raises(PromptError):
        strict_schema(model)
