"""An argument of a wrong type is refused in one sentence, and nothing is lost."""

from typing import Any

import pytest

import qrmem
from qrmem.errors import QrmemError, UsageError
from qrmem.integrations.langchain import tools
from qrmem.integrations.langgraph import MemoryStore

TEXT = "Ada Lovelace met Charles Babbage in London in 1833."


@pytest.mark.parametrize("wrong", [None, 3, b"x", ["q"]])
@pytest.mark.parametrize(
    "method",
    ["search", "ask", "recall", "entity", "facts", "delete", "forget_user", "reembed"],
)
async def test_a_question_or_a_name_that_is_no_text_is_refused(method: str, wrong: Any) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add({"id": "note", "text": TEXT})
        with pytest.raises(UsageError, match=f"must be text, not {type(wrong).__name__}"):
            await getattr(memory, method)(wrong)
        assert [info.id for info in await memory.documents()] == ["note"]


@pytest.mark.parametrize(
    ("method", "options", "says"),
    [
        ("search", {"k": "3"}, "k must be a whole number, not '3'"),
        ("search", {"k": True}, "k must be a whole number, not True"),
        ("search", {"k": None}, "k must be a whole number, not None"),
        ("search", {"k": 0}, "k must be at least 1, not 0"),
        ("search", {"where": "year=1851"}, "where maps names to values; it is not str"),
        ("ask", {"window": "100"}, "window must be a whole number, not '100'"),
        ("ask", {"max_trials": 2.5}, "max_trials must be a whole number, not 2.5"),
        ("ask", {"choices": [1, 2]}, "a choice must be text, not int"),
        ("recall", {"tokens": "3"}, "tokens must be a whole number, not '3'"),
    ],
)
async def test_an_option_of_another_type_is_named(
    method: str, options: dict[str, Any], says: str
) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add({"id": "note", "text": TEXT})
        with pytest.raises(UsageError) as caught:
            await getattr(memory, method)("Whom did Ada meet?", **options)
    assert str(caught.value) == says


async def test_bytes_are_no_list_of_documents() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        with pytest.raises(UsageError, match="not bytes"):
            await memory.add(TEXT.encode())  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("Hello.", "user"),
        ("The flight leaves.", " Assistant"),
        ("My sister Clara is allergic to walnuts.", "Ann"),
        ("https://example.org/" + "a" * 60, "Ann"),
    ],
)
async def test_a_role_and_a_text_that_are_swapped_are_refused(role: str, text: str) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        with pytest.raises(UsageError, match="the role comes first, then the text: "):
            await memory.add_turn(role, text)
        with pytest.raises(UsageError, match="the role comes first, then the text: "):
            await memory.add_messages([("user", "Hello."), (role, text)])
        assert not await memory.turns()


async def test_other_roles_and_short_texts_are_no_swapped_arguments() -> None:
    kept = [("narrator", "Hello."), ("user", "user"), ("Head of Customer Support", "Yes.")]
    log = {"role": "a role that a log has, whatever it says", "content": "System"}
    async with qrmem.open("memory://", embedder="none") as memory:
        for role, text in kept:
            await memory.add_turn(role, text)
        await memory.add_messages([log])
        assert [turn.text for turn in await memory.turns()] == ["Hello.", "user", "Yes.", "System"]


async def test_a_name_stands_first_without_its_keyword() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add({"id": "note", "text": TEXT})
        assert await memory.facts("Ada Lovelace") == await memory.facts(entity="Ada Lovelace")
        assert await memory.segments("note") == await memory.segments(document="note")
        with pytest.raises(UsageError, match="extracting facts needs a chat model"):
            await memory.extract_facts("trip")


async def test_a_turn_that_cannot_be_kept_is_an_error_and_no_number_is_given_twice() -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("Hello.", {"session": None}),
        ("Hello.", {"user": 3}),
        ("Hello.", {"at": 3}),
        ("\x00\x07", {}),
    ]
    async with qrmem.open("memory://", embedder="none") as memory:
        for text, options in wrong:
            with pytest.raises(UsageError):
                await memory.add_turn("user", text, **options)
        assert await memory.add_messages([("user", "\x07"), ("user", "Hello.")]) == [
            "turn-00000001"
        ]
        with pytest.raises(QrmemError, match="a name is empty"):
            await memory.merge("", "Ada")
        assert [turn.text for turn in await memory.turns()] == ["Hello."]


@pytest.mark.parametrize(
    ("method", "given", "options", "says"),
    [
        ("recall", ("Ada?",), {"user": 5}, "user must be text, not int"),
        ("recall", ("Ada?",), {"session": 5}, "session must be text, not int"),
        ("recall", ("Ada?",), {"reranker": 5}, "reranker must be text, not int"),
        ("search", ("Ada?",), {"reranker": 5}, "reranker must be text, not int"),
        ("turns", (), {"user": 5}, "user must be text, not int"),
        ("turns", (5,), {}, "session must be text, not int"),
        ("segments", (), {"ids": "turn-00000001"}, "ids are a list, not one text"),
        ("documents", (), {"where": 5}, "where maps names to values; it is not int"),
        ("tree_nodes", (None,), {}, "ids are a list, not NoneType"),
        ("add_messages", (None,), {}, "messages are a list, not NoneType"),
        ("entities", (-1,), {}, "limit must be at least 1, not -1"),
        ("entities", ("Ada",), {}, "limit must be a whole number, not 'Ada'"),
        ("trails", ("x",), {}, "limit must be a whole number, not 'x'"),
        ("graph", (), {"limit": "x"}, "limit must be a whole number, not 'x'"),
        ("entity", ("Ada",), {"limit": -1}, "limit must be at least 1, not -1"),
        ("entity", ("Ada",), {"offset": "x"}, "offset must be a whole number, not 'x'"),
        ("trees", (), {"kind": "x"}, "kind is 'x'; choose one of ilm, raptor"),
    ],
)
async def test_impossible_ids_are_refused_by_readers(
    method: str, given: tuple[Any, ...], options: dict[str, Any], says: str
) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add_turn("user", TEXT, user="5", session="5")
        with pytest.raises(UsageError) as caught:
            await getattr(memory, method)(*given, **options)
        assert str(caught.value) == says
        for wrong in (lambda: tools(memory, user=5), lambda: MemoryStore(memory, fields="text")):  # type: ignore[arg-type]
            with pytest.raises(UsageError, match=r"must be text|is a list"):
                wrong()
