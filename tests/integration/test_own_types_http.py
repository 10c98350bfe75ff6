"""Own types with a scripted server: replies are validated, repeated, left out and reported."""

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import networkx
import pytest
from pydantic import BaseModel, Field
from servers.openai_server import OpenAIServer, serving

import qrmem
from qrmem import Schema
from qrmem.cli import main
from qrmem.cli.costing import plan_lines
from qrmem.cli.lines import entity_lines
from qrmem.errors import UsageError
from qrmem.integrations.toolset import Toolset
from qrmem.io.graphml import _typed
from qrmem.types import Property, Scalar
from qrmem.web.entities import _neighbourhood

SAMPLE = Path(qrmem.__file__).parent / "sample" / "harbour.md"
TEXT = "Ann Lee was born in 1990. Ann Lee works for Acme Ltd since 2020. Bo Ray met Ann Lee."


class Person(BaseModel):
    """A human being, real or fictional."""

    born: int | None = Field(None, description="year of birth")
    role: Literal["captain", "clerk"] | None = None


class Company(BaseModel):
    """A business that employs people."""


class WorksFor(BaseModel):
    """A person is employed by a company."""

    head: ClassVar = Person
    tail: ClassVar = Company
    single: ClassVar = True
    since: int | None = None


OWN = Schema(entities=[Person, Company], relations=[WorksFor])


def opened(server: OpenAIServer, memory: str = "memory://", **settings: Any) -> Any:
    given: dict[str, Any] = {"model": "gpt-4o-mini", "base_url": server.url, "embedder": "none"}
    return qrmem.open(memory, **given | {"schema": OWN} | settings)


def scripted(*replies: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], str]:
    """Answer with one reply after the other, the last one again and again."""
    waiting = list(replies)
    return lambda request: json.dumps(waiting.pop(0) if len(waiting) > 1 else waiting[0])


def read(*entities: str, relations: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"entities": list(entities), "relations": list(relations), "questions": []}


FINE = read(
    "Ann Lee|Person|born=1990",
    "Acme Ltd|Company",
    "Bo Ray|Person|role=",
    relations=(
        "Ann Lee|is employed there|Acme Ltd|WorksFor|since=2020",
        "Bo Ray|met her|Ann Lee",
    ),
)


@pytest.mark.parametrize("mode", ["compact", "paper"])
async def test_types_and_properties_are_read_shown_and_asked_for(mode: str) -> None:
    async with (
        OpenAIServer(answer=scripted(FINE)) as server,
        opened(server, mode=mode) as memory,
    ):
        report = await memory.add({"id": "d", "text": TEXT})
        assert report.problems == ()
        assert "schema " + OWN.checksum in report.reader
        view = await memory.entity("Ann Lee")
        assert view.entity.type == "PERSON"
        (segment,) = view.entity.segments
        assert view.entity.properties == (Property("born", 1990, segment),)
        facts = {f.type: f for relation in view.relations for f in relation.facts}
        assert facts["WORKS_FOR"].properties == (("since", 2020),)
        assert facts["WORKS_FOR"].description == "is employed there"
        assert facts[""].description == "met her"
    asked = json.dumps(server.stats.bodies)
    for said in ("A human being", "year of birth", "captain or clerk", "(Person to Company)"):
        assert said in asked


async def test_items_that_do_not_fit_are_asked_for_once_more() -> None:
    wrong = read(
        "Ann Lee|Person|born=long ago",
        "Acme Ltd|Company",
        "Bo Ray|Person",
        relations=("Acme Ltd|employs her|Ann Lee|WorksFor", "Bo Ray|met her|Ann Lee"),
    )
    again = {
        "entities": ["Ann Lee|Person|born=1990"],
        "relations": ["Ann Lee|works there|Acme Ltd|WorksFor|since=2020"],
    }
    async with OpenAIServer(answer=scripted(wrong, again)) as server, opened(server) as memory:
        report = await memory.add({"id": "d", "text": TEXT})
        assert report.problems == ()
        assert (await memory.entity("Ann Lee")).entity.type == "PERSON"
    assert len(server.stats.bodies) == 2
    asked = server.stats.bodies[1]["messages"][-1]["content"]
    assert "Ann Lee|Person|born=long ago: Person: born: Input should be a valid integer" in asked
    assert "the head of WorksFor is Person, not COMPANY" in asked


async def test_an_item_that_never_fits_is_kept_without_a_type_and_reported() -> None:
    wrong = read(
        "Ann Lee|Person|role=queen",
        "Acme Ltd|Company",
        relations=("Ann Lee|works there|Acme Ltd|WorksFor|since=soon",),
    )
    async with OpenAIServer(answer=scripted(wrong)) as server, opened(server) as memory:
        report = await memory.add({"id": "d", "text": TEXT})
        ((_, _, why),) = report.problems
        assert "kept without a type, as it does not fit the schema: " in why
        assert "Ann Lee|Person|role=queen (Person: role: Input should be 'captain' or" in why
        view = await memory.entity("Ann Lee")
        assert view.relations[0].facts[0].type == ""
        assert view.relations[0].description == "works there"
        assert view.entity.properties == ()
        assert (await memory.entity("Acme Ltd")).entity.type == "COMPANY"
        assert (await memory.status()).problems == report.problems


class Boat(BaseModel):
    length: float | None = None
    built: int | None = None


@pytest.mark.parametrize("said", ["length=inf", "length=nan", "built=" + "9" * 30])
async def test_a_number_that_no_store_keeps_does_no_damage(said: str, tmp_path: Path) -> None:
    reply = read(f"Pequod|Boat|{said}", "Ann Lee|PERSON", relations=("Ann Lee|sails|Pequod",))
    async with (
        OpenAIServer(answer=scripted(reply)) as server,
        opened(server, str(tmp_path / "m.db"), schema=Schema([Boat])) as memory,
    ):
        report = await memory.add({"id": "d", "text": "Ann Lee sails the Pequod."})
        assert "a number of this size cannot be kept" in report.problems[0][2]
        assert (await memory.entity("Pequod")).relations[0].description == "sails"
        assert (await memory.repair()).damaged == ()


async def test_a_closed_schema_leaves_the_rest_out_and_says_how_much() -> None:
    closed = Schema([Person, Company], [WorksFor], open=False)
    more = read(
        *FINE["entities"],
        "1990|DATE",
        "Paris|PLACE",
        relations=tuple(FINE["relations"]),
    )
    async with (
        OpenAIServer(answer=scripted(more)) as server,
        opened(server, schema=closed, tagger="rules") as memory,
    ):
        report = await memory.add({"id": "d", "text": TEXT})
        assert report.left_out == 3
        assert {e.type for e in await memory.entities()} == {"PERSON", "COMPANY"}
        facts = (await memory.entity("Ann Lee")).relations
        assert [fact.type for relation in facts for fact in relation.facts] == ["WORKS_FOR"]
    asked = server.stats.bodies[0]["messages"][0]["content"]
    assert "Leave out entities and relations that are of none of these types" in asked


async def test_all_values_are_kept_and_the_one_said_last_is_last(tmp_path: Path) -> None:
    def say(request: Mapping[str, Any]) -> str:
        year = re.findall(r"in (\d{4})", request["messages"][-1]["content"])[-1]
        names = (f"Ann Lee|Person|born={year}", "Acme Ltd|Company")
        return json.dumps(
            read(*names, relations=(f"Ann Lee|is with|Acme Ltd|WorksFor|since={year}",))
        )

    async with OpenAIServer(answer=say) as server, opened(server, shared_tokens=0) as memory:
        for name, year, date in (("a", 1992, "2025"), ("b", 1990, ""), ("c", 1991, "2020-05")):
            text = f"Ann Lee was born in {year} and is with Acme Ltd."
            metadata = {"date": date} if date else {}
            await memory.add({"id": name, "text": text, "metadata": metadata})
        found = (await memory.entity("Ann Lee")).entity.properties
        assert [one.value for one in found] == [1990, 1991, 1992]
        await memory.graphml(tmp_path / "graph.graphml")
        graph = networkx.read_graphml(tmp_path / "graph.graphml")
        assert graph.nodes["ann lee|PERSON"]["property_born"] == 1992
        assert [edge["property_since"] for *_, edge in graph.edges(data=True)] == [1992]
        await memory.delete("a")
        found = (await memory.entity("Ann Lee")).entity.properties
        assert [one.value for one in found] == [1990, 1991]


async def test_without_a_model_a_type_of_the_same_name_applies() -> None:
    async with qrmem.open("memory://", model="", embedder="none", schema=OWN) as memory:
        report = await memory.add({"id": "d", "text": "Mr. Owen Chase met Captain Ahab at sea."})
        assert (await memory.entity("Owen Chase")).entity.type == "PERSON"
        assert report.warnings == ("no chat model is set, which the schema's own types need",)


async def test_the_status_counts_segments_read_with_other_settings_and_the_cost_of_rereading(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "m.db")
    async with qrmem.open(path, model="", embedder="none") as memory:
        await memory.add({"id": "d", "text": TEXT})
        assert (await memory.status()).read_otherwise == {}
    async with serving() as server:
        async with opened(server, path, schema="") as memory:
            assert (await memory.status()).read_otherwise == {"without a model": 1}
            await memory.add({"id": "e", "text": TEXT + " Bo Ray left."})
        async with opened(server, path) as memory:
            asked = server.stats.requests
            status = await memory.status()
            assert status.read_otherwise == {"without a model": 1, "without a schema": 1}
            assert re.search(
                r"2 segments read with other settings than the present ones \(1 without a model, 1 "
                r"without a schema\);"
                r" reading them again \(--rebuild\) takes about \d calls?, [\d,]{3,} tokens,"
                r" 0\.00\d+ USD$",
                status.warnings[-1],
            )
            plan = await memory.plan({"id": "e", "text": TEXT + " Bo Ray left."})
            assert plan.read_otherwise == {"without a schema": 1}
            (line,) = (line for line in plan_lines(plan) if line.startswith("not again: "))
            assert re.search(r"1 segment read .* \d calls??, [\d,]{3,} tokens, 0\.00\d+ USD$", line)
            assert server.stats.requests == asked
            again = status.reading_again
            assert again
            assert plan.reading_again
            assert plan.reading_again.tokens < again.tokens
            used = server.stats.tokens_in + server.stats.tokens_out
            both = {"id": "e", "text": TEXT + " Bo Ray left."}, {"id": "d", "text": TEXT}
            await memory.add(both, rebuild=True)
            used = server.stats.tokens_in + server.stats.tokens_out - used
            assert server.stats.requests - asked == again.calls
            assert used == pytest.approx(again.tokens, rel=0.5)
            assert again.cost
            after = await memory.status()
            assert (after.read_otherwise, after.reading_again) == ({}, None)
        other = Schema([Person])
        async with opened(server, path, schema=other) as memory:
            assert (await memory.status()).read_otherwise == {"under another schema": 2}
        async with opened(server, path, schema="") as memory:
            status = await memory.status()
            assert status.read_otherwise == {"under a schema, and none is given now": 2}
            assert "--rebuild without it drops their types" in status.warnings[-1]
            assert "QRMEM_SCHEMA=FILE" in status.warnings[-1]


async def test_types_and_properties_are_in_show_and_in_graphml(tmp_path: Path) -> None:
    async with OpenAIServer(answer=scripted(FINE)) as server, opened(server) as memory:
        await memory.add({"id": "d", "text": TEXT})
        view = await memory.entity("Ann Lee")
        (segment,) = view.entity.segments
        shown = entity_lines(view, 10)
        assert f"  born: 1990 ({segment})" in shown
        assert "  → Acme Ltd (1) WORKS_FOR: is employed there" in shown
        tools = Toolset(memory)
        assert "born: 1990" in (await tools.look_up_entity("Ann Lee")).splitlines()
        with pytest.raises(UsageError, match="as_of 'soon' is not a date"):
            await tools.look_up_entity("Ann Lee", "soon")
        assert _neighbourhood(view, (), 0, 5).properties == {"born": ["1990"]}, "for the page"
        await memory.graphml(str(tmp_path / "graph.graphml"))
        written = (tmp_path / "graph.graphml").read_text()
        for said in (">1990<", ">PERSON<", ">WORKS_FOR<", ">2020<"):
            assert said in written


SCHEMA_FILE = """
[entities.Person.properties]
born = { type = "int" }
[entities.Company]
[relations.WorksFor]
single = true
properties = { since = { type = "int" } }
"""


async def test_statements_ended_by_later_ones_are_ended_in_graphml_and_in_notes(
    tmp_path: Path,
) -> None:
    later = read(
        *("Ann Lee|Person|born=1990", "Bell Works|Company"),
        relations=("Ann Lee|is employed there|Bell Works|WorksFor",),
    )
    path, schema = str(tmp_path / "m.db"), tmp_path / "own.toml"
    schema.write_text(SCHEMA_FILE, encoding="utf-8")
    async with (
        OpenAIServer(answer=scripted(FINE, later)) as server,
        opened(server, path, schema=schema) as memory,
    ):
        await memory.add({"id": "d", "text": TEXT, "metadata": {"date": "2025-01-10"}})
        new = "Ann Lee works for Bell Works now."
        await memory.add({"id": "e", "text": new, "metadata": {"date": "2026-05-02"}})
    words = ["-m", path, "-q"]  # the memory keeps which types are single
    written = str(tmp_path / "graph.graphml")
    assert await asyncio.to_thread(main, ["export", written, "--graphml", *words]) == 0
    graph = networkx.read_graphml(written)
    of_name = {data["label"]: (key, data) for key, data in graph.nodes(data=True)}
    assert of_name["Ann Lee"][1]["property_born"] == 1990

    def edge(tail: str) -> dict[str, Any]:
        data = graph.edges[of_name["Ann Lee"][0], of_name[tail][0]]
        return {name: data.get(name) for name in ("said_at", "valid_until", "property_since")}

    ended = {"said_at": "2025-01-10", "valid_until": "2026-05-02", "property_since": 2020}
    assert edge("Acme Ltd") == ended
    assert edge("Bell Works") == dict(zip(ended, ("2026-05-02", None, None), strict=True))
    notes = str(tmp_path / "notes")
    assert await asyncio.to_thread(main, ["export", notes, "--markdown", *words]) == 0
    note = (tmp_path / "notes" / "entities" / "Ann Lee.md").read_text(encoding="utf-8")
    assert "until 2026-05-02; then: Ann Lee — is employed there — Bell Works" in note


def test_a_property_has_one_type_in_graphml_and_is_text_where_its_values_differ() -> None:
    rows: dict[str, dict[str, Scalar]] = {
        "a": {"n": 1, "b": True, "m": 1, "h": 2**70},
        "b": {"n": 0.5, "b": False, "m": "x", "h": 1},
    }
    assert {key: [*row.values()] for key, row in _typed(rows).items()} == {
        "a": [1.0, True, "1", str(2**70)],
        "b": [0.5, False, "x", "1"],
    }


class Ship(BaseModel):
    """A vessel."""

    built: int | None = Field(None, description="year in which it was built")


class Harbour(BaseModel):
    """A place where ships lie."""


class SailsFrom(BaseModel):
    """A ship begins its voyages at a harbour."""

    head: ClassVar = Ship
    tail: ClassVar = Harbour
    since: int | None = None


FIVE = Schema(entities=[Person, Company, Ship, Harbour], relations=[SailsFrom])


async def test_five_own_types_and_dates_cost_a_quarter_more_at_most_and_are_planned(
    tmp_path: Path,
) -> None:
    templates = Path(qrmem.__file__).parent / "prompts" / "templates"
    asks_for_dates = re.compile(r" Where [^.]* that holds, \"[^.]*, YYYY-MM\.")
    changed = 0
    for file in templates.glob("*.md"):
        words, times = asks_for_dates.subn("", file.read_text())
        changed += times
        if times:
            (tmp_path / file.name).write_text(words)
    assert changed == 6
    spent = []
    for schema, prompts in (("", str(tmp_path)), ("", ""), (FIVE, "")):
        async with serving() as server, opened(server, schema=schema, prompts=prompts) as memory:
            plan = await memory.plan(SAMPLE)
            report = await memory.add(SAMPLE)
            assert report.problems == ()
            used = server.stats.tokens_in + server.stats.tokens_out
            assert used in plan.tokens
            spent.append(used / report.read)
    plain, dates, types = spent
    print(f"tokens a segment: {plain:.0f}, with dates {dates:.0f}, and five own types {types:.0f}")
    assert types <= 1.25 * plain
