"""The parts of an unfinished reply that a user may see."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from qrmem.llm import client
from qrmem.llm.client import Fields, joined


def told(text: str, size: int) -> dict[str, str]:
    fields, said = Fields(), dict[str, str]()
    for at in range(0, len(text), size):
        for field, piece in fields.feed(text[at : at + size]):
            said[field] = said.get(field, "") + piece
    return said


@given(
    st.dictionaries(
        st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
        st.text(st.characters(codec="utf-8"), max_size=20)
        | st.lists(st.text(max_size=5), max_size=3)
        | st.integers()
        | st.dictionaries(st.text(max_size=3), st.text(max_size=3), max_size=2),
        max_size=5,
    ),
    st.integers(1, 7),
    st.booleans(),
)
def test_text_fields_are_streamed_in_any_pieces(
    reply: dict[str, object], size: int, is_ascii: bool
) -> None:
    texts = {name: value for name, value in reply.items() if isinstance(value, str) and value}
    assert told(json.dumps(reply, ensure_ascii=is_ascii), size) == texts


@given(st.text(), st.integers(1, 9))
def test_any_text_is_streamed_without_an_error(text: str, size: int) -> None:
    told(text, size)


def test_text_before_the_reply_is_not_part_of_it() -> None:
    assert told('Sure, "here": {it} is\n{"answer": "Rome"}', 3) == {"answer": "Rome"}


def test_a_long_reply_is_read_far_less_often_than_it_has_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = 0

    def counted(text: str, **how: Any) -> Any:
        nonlocal read
        read += 1
        return from_json(text, **how)

    monkeypatch.setattr(client, "from_json", counted)
    text = "and so on " * 2_000
    assert told(json.dumps({"answer": text}), 4) == {"answer": text}
    assert read < 1_000


async def events(*said: object) -> AsyncIterator[object]:
    for event in said:
        yield event


def event(text: str = "", end: str | None = None, **more: object) -> dict[str, object]:
    choice = {"index": 0, "delta": {"content": text} if text else {}, "finish_reason": end}
    return {"choices": [choice], **more}


async def test_events_are_joined_into_one_body() -> None:
    heard: list[str] = []
    usage = {"choices": [], "usage": {"prompt_tokens": 3}}
    given = (event("Ro", model="m"), event("me"), event(end="stop"), usage)
    body = json.loads(await joined(events(*given), heard.append))
    assert heard == ["Ro", "me"]
    assert body["model"] == "m"
    assert body["usage"] == {"prompt_tokens": 3}
    (choice,) = body["choices"]
    assert choice["message"]["content"] == "Rome"
    assert choice["finish_reason"] == "stop"


async def test_pieces_may_come_in_parts() -> None:
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    delta = {"content": [thought, {"type": "text", "text": "Rome"}]}
    ended = {"choices": [{"delta": delta, "finish_reason": "stop"}]}
    body = json.loads(await joined(events(ended), lambda piece: None))
    assert body["choices"][0]["message"]["content"] == "Rome"


@pytest.mark.parametrize(
    "given",
    [(event("Ro"),), (event("Ro"), ["no", "event"]), ()],
    ids=["breaks off", "no event", "nothing"],
)
async def test_a_stream_that_has_no_end_is_no_reply(given: Sequence[object]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        await joined(events(*given), lambda piece: None)
