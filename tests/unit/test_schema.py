"""Schemas: valid ones, and one clear line for each error."""

import os
import re
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import AfterValidator, AliasChoices, BaseModel, Field, RootModel, create_model

import qrmem
from qrmem.cli import main
from qrmem.errors import UsageError
from qrmem.graphstore.neo4j.database_schema import LABELS, TYPES
from qrmem.schema import OF_THE_STORE, Schema, load_schema
from qrmem.text.names import camel_case, type_key


class Rank(Enum):
    MATE = "mate"
    CAPTAIN = "captain"


class Sailor(BaseModel):
    """One who sails.

    For a living.
    """

    rank: Rank | None = None
    born: date | None = Field(None, description="day of birth")


class SailsOn(BaseModel):
    head: ClassVar = "Sailor"
    single: ClassVar = True


def model(name: str, **fields: Any) -> Any:
    return create_model(name, **fields)


def test_a_type_is_shown_with_its_words_and_its_properties() -> None:
    schema = Schema([Sailor], [SailsOn])
    assert [kind.line() for kind in schema] == [
        "Sailor: One who sails. For a living. Properties: rank (mate or captain),"
        " born (day of birth: YYYY-MM-DD)",
        "SailsOn (Sailor to any)",
    ]
    assert schema.single == {"SAILS_ON"}
    kind = schema.entities["SAILOR"]
    assert kind.checked({"Rank": "mate", "born": "1851-10-18"}) == (
        ("born", "1851-10-18"),
        ("rank", "mate"),
    )
    with pytest.raises(ValueError, match="rank: Input should be 'mate' or 'captain'"):
        kind.checked({"rank": "cook"})


@pytest.mark.parametrize(
    ("name", "key"),
    [("ShipYard", "SHIP_YARD"), ("PERSON", "PERSON"), ("HTTPServer", "HTTP_SERVER"), ("A1", "A1")],
)
def test_a_type_has_one_key_however_it_is_written(name: str, key: str) -> None:
    assert type_key(name) == type_key(key) == type_key(camel_case(key)) == key


def test_a_checksum_follows_what_is_asked_for() -> None:
    same, other = Schema([Sailor], [SailsOn]), Schema([Sailor], [SailsOn], open=False)
    assert Schema([Sailor], [SailsOn]).checksum == same.checksum != other.checksum
    assert Schema([model("Sailor", born=(int | None, None))]).checksum != same.checksum


def test_types_reserved_by_the_store_are_known() -> None:
    assert {*LABELS, *TYPES, "QrmemSchema", "TreeNode"} == OF_THE_STORE


class Node(BaseModel):
    below: "Node | None" = None


CHOICE = AliasChoices("c", "d")
_MANY: Any = {f"p{n}": (str, "") for n in range(21)}


@pytest.mark.parametrize(
    ("entities", "relations", "said"),
    [
        ((), (), "the schema has no type"),
        ("Person", (), "entities is a list of pydantic models, not 'Person'"),
        ((Sailor(rank=None, born=None),), (), "entities are pydantic models .classes., not Sailor"),
        ((int,), (), "entities are pydantic models .classes., not <class 'int'>"),
        ((Sailor, model("SAILOR")), (), "two types are called SAILOR"),
        ((Sailor,), (model("Sailor"),), "Sailor is a type of entities and of relations"),
        ((model("A`B"),), (), "a type is called 'A`B': a name has letters"),
        ((model("A:B"),), (), "a type is called 'A:B': a name has letters"),
        ((model("Schäfer"),), (), "a type is called 'Schäfer': a name has letters"),
        ((model("A" * 41),), (), "at most 40 characters"),
        ((model("Segment"),), (), "a type may not be called Segment: it is a label of the store"),
        ((model("document"),), (), "a type may not be called document: it is a label of the store"),
        ((model("Tree_Node"),), (), "may not be called Tree_Node: it is a label of the store"),
        ((model("QrmemOwn"),), (), "may not be called QrmemOwn: it is a label of the store"),
        ((Sailor,), (model("Mentions"),), "may not be called Mentions: the store has MENTIONS"),
        ((), (SailsOn,), "the head of SailsOn is 'Sailor', which is not an entity type"),
        ((model("A", key=(str, "")),), (), "A.key: the store has such a property; rename it"),
        ((model("A", Qrmem_own=(str, "")),), (), "A.Qrmem_own: the store has such a property"),
        ((model("A", b=(int, 0), B=(int, 0)),), (), "A: b and B differ in case alone; rename one"),
        ((model("A", b=(int, Field(0, validation_alias=CHOICE))),), (), "A.b: an alias is one"),
        ((RootModel[int],), (), "entities are pydantic models .classes., not <class"),
        ((Node,), (), "Node.below: a property is a text, a number, a truth value"),
        ((model("A", b=(list[str], [])),), (), "A.b: a property is a text"),
        ((model("A", b=(dict[str, Any], {})),), (), "A.b: a property is a text"),
        ((model("A", **_MANY),), (), "A has 21 properties; at most 20 fit"),
        ((model("A", b=(str, Field("", description="x" * 501))),), (), "A.b has 501 characters"),
        ([model(f"T{n}") for n in range(51)], (), "51 types; at most 50 fit"),
    ],
)
def test_a_schema_that_cannot_be_kept_is_one_clear_line(
    entities: Any, relations: Any, said: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        Schema(entities, relations)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"\xff\xd8\x00", "not a text in UTF-8"),
        ("entities = 1", "entities is not a table"),
        ("[entities]\nPerson = 1", r"entities.Person is not a table; write \[entities.Person\]"),
        ("[entity.Person]", "a schema has no 'entity'; it has open, entities, relations"),
        ("open = 1\n[entities.Person]", "open is 1; write true or false"),
        ("[entities.'A`B']", "a type is called 'A`B'"),
        ("[entities.A.properties]\n'b c' = 'x'", "a property of A is called 'b c'"),
        *(
            (f"[entities.A.properties]\n{name} = 'text'", f"A.{name}: pydantic has such a name")
            for name in ("model_config", "model_dump", "copy")
        ),
        ("[entities.A.properties]\nb = 1", r"\[entities.A\]: b is 1; write a description"),
        ("[entities.A.properties]\nb = {type = 'list'}", "type is 'list'; choose one of text, int"),
        ("[entities.A.properties]\nb = {type = ['int']}", r"type is \['int'\]; choose one of text"),
        ("[entities.A.properties]\nb = {choices = [1]}", "choices is not a list of words"),
        (
            "[relations.R]\nhead = 'Nobody'",
            "the head of R is 'Nobody', which is not an entity type",
        ),
        ("[relations.R]\nsingle = 'yes'", r"\[relations.R\]: single is 'yes'; write true or false"),
        ("[", "not TOML"),
        ("", "the schema has no type"),
    ],
)
def test_a_file_that_is_no_schema_is_one_clear_line(
    tmp_path: Path, text: str | bytes, said: str
) -> None:
    path = tmp_path / "own.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(UsageError, match=said) as caught:
        load_schema(path)
    assert str(caught.value).startswith(f"schema {path}: ")
    assert "\n" not in str(caught.value)


def test_a_pipe_named_as_the_schema_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "own.toml")
    with pytest.raises(UsageError, match="a pipe or a device, not a file"):
        load_schema(tmp_path / "own.toml")


async def test_open_takes_a_schema_or_a_file_and_nothing_else(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"own.toml: No such file"):
        await qrmem.open("memory://", schema=tmp_path / "own.toml")
    wrong: Any = Sailor
    with pytest.raises(UsageError, match=r"schema is a qrmem.Schema or a TOML file, not <class"):
        await qrmem.open("memory://", schema=wrong)


def test_the_example_that_init_writes_is_a_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init", "--schema"]) == 0
    assert "written schema.toml: edit it, then `qrmem add … --schema schema.toml`" in (
        capsys.readouterr().out
    )
    schema = load_schema("schema.toml")
    assert schema is not None
    assert [kind.name for kind in schema] == ["Person", "Company", "WorksFor"]
    status: Literal["active"] = "active"
    assert schema.entities["COMPANY"].checked({"status": status}) == (("status", "active"),)
    assert schema.relations["WORKS_FOR"].checked({"since": "1999"}) == (("since", 1999),)
    assert main(["init", "--schema"]) == 2


def _raises(_: object) -> int:
    raise ZeroDivisionError("of\nthe user's own")


@pytest.mark.parametrize(
    ("field", "said", "why"),
    [
        ((float | None, None), "inf", "b: a number of this size cannot be kept"),
        ((float | None, None), "nan", "b: a number of this size cannot be kept"),
        ((float | None, None), "1e999", "b: a number of this size cannot be kept"),
        ((int | None, None), "9223372036854775808", "b: a number of this size cannot be kept"),
        ((int, Field(default_factory=lambda: 1 // 0)), "", "its validator raised ZeroDivisionErr"),
        ((Annotated[int, AfterValidator(_raises)], 0), "1", "ZeroDivisionError: of the user's own"),
        ((Annotated[str, Field(max_length=3)] | None, None), "long", "b: String should have at"),
    ],
)
def test_a_value_that_cannot_be_kept_does_not_fit(field: Any, said: str, why: str) -> None:
    (kind,) = Schema([model("A", b=field)])
    with pytest.raises(ValueError, match=re.escape(why)) as caught:
        kind.checked({"b": said} if said else {})
    assert "\n" not in str(caught.value)


def test_a_property_with_an_alias_is_kept_under_its_own_name() -> None:
    (kind,) = Schema([model("A", b=(int | None, Field(None, alias="c")))])
    assert kind.checked({"b": "7"}) == (("b", 7),)
