"""From when until when statements hold, as a chat model reads it: validated, kept, shown."""

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel
from servers.openai_server import OpenAIServer

import qrmem
from qrmem import Schema
from qrmem.cli.fact_commands import fact_lines

TEXT = (
    "Ann Lee took her post at Acme Ltd in May 2019. Bo Ray was with Acme Ltd: it began on 3 May"
    " 2014 and was over in 2017. Bo Ray met Ann Lee."
)


class Person(BaseModel):
    """A human being."""


class Company(BaseModel):
    """A business."""


class WorksFor(BaseModel):
    """A person is employed by a company."""

    head: ClassVar = Person
    tail: ClassVar = Company
    since: int | None = None


OWN = Schema(entities=[Person, Company], relations=[WorksFor])
NAMES = ("Ann Lee|PERSON", "Acme Ltd|ORGANISATION", "Bo Ray|PERSON")


def opened(server: OpenAIServer, schema: Any = "", **settings: Any) -> Any:
    given: dict[str, Any] = {"model": "gpt-4o-mini", "base_url": server.url, "embedder": "none"}
    return qrmem.open("memory://", **given | {"schema": schema} | settings)


def scripted(*replies: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], str]:
    """Answer with one reply after the other, the last one again and again."""
    waiting = list(replies)
    return lambda request: json.dumps(waiting.pop(0) if len(waiting) > 1 else waiting[0])


def read(*entities: str, relations: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"entities": list(entities), "relations": list(relations), "questions": []}


def relation(*dates: str) -> str:
    return "|".join(("Bo Ray|was with|Acme Ltd", *dates))


async def times_of(memory: Any, name: str = "Bo Ray") -> set[tuple[str, str]]:
    facts = await memory.facts(entity=name, superseded=True)
    return {(fact.valid_from, fact.valid_until) for fact in facts if fact.description == "was with"}


@pytest.mark.parametrize("mode", ["compact", "paper"])
async def test_dates_of_the_reply_are_kept_and_shown(mode: str) -> None:
    reply = read(
        *NAMES,
        relations=(
            "Ann Lee|works for|Acme Ltd|valid_from=2019-05|valid_until=",
            relation("valid_from=2014-05-03", "valid_until=2017"),
            "Bo Ray|met|Ann Lee",
        ),
    )
    async with (
        OpenAIServer(answer=scripted(reply)) as server,
        opened(server, mode=mode) as memory,
    ):
        report = await memory.add({"id": "d", "text": TEXT})
        assert report.problems == ()
        assert await times_of(memory) == {("2014-05-03", "2017")}
        facts = await memory.facts(entity="Ann Lee", as_of="2026")
        assert [(f.valid_from, f.valid_until) for f in facts if f.description == "works for"] == [
            ("2019-05", "")
        ]
        was = await memory.facts(entity="Bo Ray", superseded=True)
        assert "    from 2014-05-03, until 2017" in fact_lines(was, 10)
    asked = json.dumps(server.stats.bodies)
    assert "valid_from=YYYY-MM-DD" in asked


async def test_several_passages_in_one_call_have_their_own_dates() -> None:
    def say(request: Mapping[str, Any]) -> str:
        def one(n: int, year: int) -> dict[str, Any]:
            return {"n": n, **read(*NAMES, relations=(relation(f"valid_from={year}"),))}

        return json.dumps({"passages": [one(1, 2001), one(2, 2002)]})

    async with OpenAIServer(answer=say) as server, opened(server) as memory:
        await memory.add(
            [
                {"id": year, "text": f"Bo Ray was with Acme Ltd. It was {year}. Ann Lee left."}
                for year in ("2001", "2002")
            ]
        )
        assert len(server.stats.bodies) == 1
        assert await times_of(memory) == {("2001", ""), ("2002", "")}


@pytest.mark.parametrize(
    ("dates", "kept", "told"),
    [
        (("valid_from=2014-02-31",), ("", ""), "valid_from '2014-02-31' is no date"),
        (("valid_from=0000",), ("", ""), "valid_from '0000' is no date"),
        (("valid_until=soon",), ("", ""), "valid_until 'soon' is no date"),
        (("valid_from=2014", "valid_until=99-99"), ("2014", ""), "valid_until '99-99' is no date"),
        (
            ("valid_from=2017", "valid_until=2014"),
            ("", ""),
            "valid_until 2014 lies before valid_from 2017",
        ),
        (("valid_from=3 May 2014", "valid_until=present"), ("2014-05-03", ""), ""),
        (("valid_from=1999",), ("", ""), ""),  # the text names no such year
        (("VALID_FROM: 2014", "valid_until=unknown"), ("2014", ""), ""),
        (("valid_from=2014'}) DETACH DELETE n //",), ("", ""), "is no date"),
        (("valid_from=" + "9" * 5000,), ("", ""), "is no date"),
    ],
)
@pytest.mark.parametrize("schema", ["", OWN])
async def test_a_wrong_date_is_reported_and_dropped_and_its_statement_is_kept(
    dates: tuple[str, ...], kept: tuple[str, str], told: str, schema: Any
) -> None:
    # The rules would find the dates of the text, too: the names stand in no sentence with them.
    text = "In 2014 and 2017. Bo Ray was with Acme Ltd. Ann Lee saw it."
    names = [name.replace("ORGANISATION", "Company") for name in NAMES]
    reply = read(*names, relations=(relation(*dates),))
    async with OpenAIServer(answer=scripted(reply)) as server, opened(server, schema) as it:
        report = await it.add({"id": "d", "text": text})
        assert await times_of(it) == {kept}
        reasons = [why for _, _, why in report.problems]
        assert [told in why for why in reasons] == ([True] if told else [])
        assert (await it.status()).problems == report.problems
        if told:
            assert "kept without a date: Bo Ray|was with|Acme Ltd (" in reasons[0]
            assert "\n" not in reasons[0]
            assert len(reasons[0]) <= 300
            assert len(server.stats.bodies) == 1  # a date is not asked for once more


async def test_a_date_stays_with_what_is_written_again() -> None:
    wrong = read(
        *("Ann Lee|Person", "Acme Ltd|Company"),
        relations=("Ann Lee|works there|Acme Ltd|WorksFor|valid_from=2019-05|since=soon",),
    )
    again = {"entities": [], "relations": ["Ann Lee|works there|Acme Ltd|WorksFor|since=2019"]}
    async with OpenAIServer(answer=scripted(wrong, again)) as server, opened(server, OWN) as memory:
        report = await memory.add({"id": "d", "text": TEXT})
        assert report.problems == ()
        (fact,) = await memory.facts(entity="Ann Lee")
        assert (fact.type, fact.valid_from) == ("WORKS_FOR", "2019-05")
