"""Conditions that `where=` refuses, and conditions on the command line."""

from typing import Any

import pytest

import qrmem
from qrmem.cli.parsed_arguments import narrowed
from qrmem.cli.parser import build_parser
from qrmem.errors import NotFound, UsageError
from qrmem.types.documents import conditions, written

DOCUMENTS = [
    {"id": "moby", "text": "Ahab sails.", "metadata": {"year": 1851, "tag": ["sea", "whale"]}},
    {"id": "emma", "text": "Emma sails.", "metadata": {"year": 1815, "tag": ["love"]}},
    {"id": "jim", "text": "Jim sails.", "metadata": {"year": 1900, "tag": ["sea"], "by": "Conrad"}},
]


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("year=1851", "where maps names to values; it is not str"),
        ({1: "x"}, "names in where must be text"),
        ({"year": {}}, "has no condition; use one of = < <= > >= in has"),
        ({"year": {"~": 1851}}, "no operator is called '~'; use ="),
        ({"year": {"$gte": 1851}}, "no operator is called '$gte'"),
        ({"year": {">=": 1851, "<": "1900"}}, "two numbers or two texts"),
        ({"year": {">=": True}}, "true and false cannot be bounds"),
        ({"year": {">=": "\U0001f600"}}, "not have emoji"),
        ({"year": {">=": {"<": 5}}}, "is a dict; a value is"),
        ({"year": {"in": []}}, "empty list"),
        ({"year": {"in": "1851"}}, "takes a list of values, not str"),
        ({"year": {"in": [[1851]]}}, "is a list; a value is"),
        ({"year": {"in": [None]}}, "is nothing; a value is"),
        ({"year": {"in": range(5000)}}, "5,000 values; at most 1,000"),
        ({"year": {"has": ["sea"]}}, "is a list; a value is"),
        ({"year": ["sea"]}, "is a list; a value is"),
        ({"year": None}, "is nothing; a value is"),
        ({"year": {">": 2**63}}, "too large"),
        ({"year": {">": float("nan")}}, "is nan"),
        ({f"n{n}": 1 for n in range(3000)}, "3,000 names; at most 100"),
        ({"user": {"in": [" ann"]}}, "begins or ends with a blank"),
    ],
)
async def test_a_bad_filter_is_refused_in_one_line(where: Any, told: str) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(DOCUMENTS)
        with pytest.raises(UsageError) as caught:
            await memory.search("Who sails?", where=where)
        assert told in str(caught.value)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 200


async def test_search_and_ask_look_only_where_the_conditions_hold() -> None:
    async def found(*words: str) -> list[str]:
        arguments = [
            "search",
            "Who sails?",
            *(part for word in words for part in ("--where", word)),
        ]
        where = narrowed(build_parser().parse_args(arguments))["where"]
        hits = await memory.search("Who sails?", where=where)
        cited = (await memory.ask("Who sails?", where=where)).citations
        ids = sorted({hit.document_id for hit in hits})
        assert {one.document_id for one in cited} <= set(ids)
        assert [info.id for info in await memory.documents(where)] == ids
        return ids

    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(DOCUMENTS)
        assert await found("year>=1851") == ["jim", "moby"]
        assert await found("year>1851") == ["jim"]
        assert await found("year>=1815", "year<1900") == ["emma", "moby"]
        assert await found("year in 1815, 1900") == ["emma", "jim"]
        assert await found("tag has sea", "year<=1851") == ["moby"]
        assert await found("tag=sea") == ["jim", "moby"]
        assert await found("by>=C") == ["jim"]
        with pytest.raises(NotFound, match="has the metadata year>=2000, tag has sea"):
            await memory.search("x", where={"year": {">=": 2000}, "tag": {"has": "sea"}})


def test_the_first_operator_of_a_word_counts() -> None:
    def read(word: str) -> Any:
        return narrowed(build_parser().parse_args(["search", "x", "--where", word]))["where"]

    assert read("title=war in peace >= 3") == {"title": {"=": "war in peace >= 3"}}
    assert read("tag in a=b,c") == {"tag": {"in": ["a=b", "c"]}}
    assert read("open=true") == {"open": {"=": True}}
    assert read("my tag has x y") == {"my tag": {"has": "x y"}}


def test_a_choice_is_shown_as_it_is_written() -> None:
    where = {"year": {">=": 1851, "<": 1900}, "tag": {"has": "sea"}, "by": {"in": list("abcdefg")}}
    assert written(conditions(where)) == "year>=1851, year<1900, tag has sea, by in a,b,c,d,e,…"
    assert written(conditions({"old": True})) == "old=true"
