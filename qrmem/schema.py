"""A schema: the entity and relation types of a memory, with their properties.

A schema consists of pydantic models, or is read from a TOML file. The name of a class is the type,
its docstring and the descriptions of its fields go into the prompts, its fields are the properties.
"""

import hashlib
import json
import math
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime
from enum import Enum
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Field, RootModel, ValidationError, create_model

from qrmem.errors import UsageError
from qrmem.text.names import camel_case, is_type, type_key
from qrmem.types import Properties, Scalar

MOST_TYPES, MOST_PROPERTIES, LONGEST_WORDS = 50, 20, 500
"""Limits on types, properties of a type, and characters of a description: prompts contain them."""

_LABELS = """
    Document Entity Name QrmemBlock QrmemCall QrmemContribution QrmemDecision QrmemNamespace
    QrmemRelationVector QrmemReply QrmemSchema QrmemStale QrmemTitle QrmemWindow Question Segment
    Statement Step Trail TreeNode
"""
_RELATIONSHIPS = """
    ABOUT ADDED ASKED_OF CONTRIBUTED COVERS DROPPED EXPANDED FROM HAS IN MEANS MENTIONS NAMES NEXT
    READ RELATES STATES STEP THEN TO WINDOW
"""
OF_THE_STORE = frozenset((_LABELS + _RELATIONSHIPS).split())
"""Labels and relationship types that the store itself uses in a graph database."""
_PROPERTIES = """
    count counts description forms full full_name head key label mentions merged n name ns
    properties question questions said said_at segment statements superseded_by surface tail
    type types valid_from valid_until
"""
_PROPERTIES_OF_THE_STORE = frozenset(_PROPERTIES.split())
_KINDS: Mapping[str, type] = {
    "text": str,
    "int": int,
    "float": float,
    "bool": bool,
    "date": date,
}
"""Types of properties, by their names in a file."""
_SIMPLE = (str, int, float, bool, date, datetime)
_PROPERTY = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,39}")

EXAMPLE = """\
# Own types of a memory: qrmem add … --schema schema.toml, or QRMEM_SCHEMA=schema.toml.
# Names are in CamelCase. Descriptions of types and properties go into the prompts.

open = true  # false: entities and relations of other types are left out

[entities.Person]
description = "A human being, real or fictional."
[entities.Person.properties]
role = "what they do"
born = { type = "int", description = "year of birth" }  # text, int, float, bool or date

[entities.Company]
description = "A business that employs people or sells something."
[entities.Company.properties]
status = { choices = ["active", "closed"] }

[relations.WorksFor]
description = "A person is employed by a company."
head = "Person"
tail = "Company"  # for several: ["Company", "Person"]
single = true  # one at a time: a later one replaces an earlier one
[relations.WorksFor.properties]
since = { type = "int", description = "year in which it began" }
"""
"""The example schema that `qrmem init --schema` writes."""


class Kind:
    """A type of entities or of relations.

    Attributes:
        name: name of the class, as in prompts.
        key: stored form of the name: `ShipYard` is `SHIP_YARD`.
        words: its description.
        properties: descriptions of the properties, by name.
        heads: keys of the entity types at which a relation may begin; empty for any.
        tails: keys of the entity types at which it may end; empty for any.
        is_single: whether a head has only one such relation at a time.
    """

    def __init__(self, model: type[BaseModel]) -> None:
        self.model = model
        self.name = model.__name__
        self.key = type_key(self.name)
        self.words = " ".join(_own_words(model).split())
        self.properties = {name: _described(f) for name, f in model.model_fields.items()}
        self.heads = _ends(model, "head")
        self.tails = _ends(model, "tail")
        self.is_single = getattr(model, "single", False) is True

    def checked(self, said: Mapping[str, str]) -> Properties:
        """Return properties in the model's types.

        Raises:
            ValueError: they do not validate; the message is one line.
        """
        names = {name.lower(): name for name in self.properties}
        values_by_key = {
            _key(self.model, names[name.lower()]): value for name, value in said.items()
        }
        try:
            instance = self.model.model_validate(values_by_key)
        except ValidationError as exc:
            errors = exc.errors(include_url=False, include_input=False)
            where = "; ".join(f"{_place(error)}{error['msg']}" for error in errors[:3])
            raise ValueError(" ".join(where.split())) from None
        except Exception as exc:  # the user's own validator raised it
            raised = " ".join(f"{type(exc).__name__}: {exc}".split())
            raise ValueError(f"its validator raised {raised[:200]}") from exc
        values = ((name, _scalar(getattr(instance, name))) for name in self.properties)
        properties = tuple(
            sorted((name, value) for name, value in values if value not in (None, ""))
        )
        if unfit := [name for name, value in properties if not _fits_a_store(value)]:
            raise ValueError(f"{unfit[0]}: a number of this size cannot be kept")
        return properties

    def line(self) -> str:
        """Return the type as a line of a prompt."""
        ends = " to ".join("/".join(names) or "any" for names in (self.heads, self.tails))
        between = f" ({ends})" if self.heads or self.tails else ""
        properties_in_words = ", ".join(
            f"{name} ({words})" if words else name for name, words in self.properties.items()
        )
        lines = [f"{self.name}{between}", self.words.rstrip(".") and f": {self.words.rstrip('.')}"]
        return "".join(lines) + (
            f". Properties: {properties_in_words}" if properties_in_words else ""
        )


class Schema:
    """The types of a memory.

    Example:
        >>> class Person(BaseModel):
        ...     '''A human being.'''
        ...     born: int | None = Field(None, description="year of birth")
        >>> Schema(entities=[Person]).entities["PERSON"].name
        'Person'

    Attributes:
        entities: entity types by key.
        relations: relation types by key.
        is_open: whether entities and relations of other types are kept.
    """

    def __init__(
        self,
        entities: Sequence[type[BaseModel]] = (),
        relations: Sequence[type[BaseModel]] = (),
        *,
        open: bool = True,
    ) -> None:
        """Take pydantic models.

        Args:
            entities: models of entity types. A property is a text, a number, a boolean, a date or
                one of given words; give it a default such as `None` if texts may not state it.
            relations: models of relation types. A model may name its ends by `head: ClassVar =
                Person` and `tail: ClassVar = (Company, Person)`, and have `single: ClassVar = True`
                if a head has only one at a time.
            open: `False` leaves out entities and relations of other types.

        Raises:
            UsageError: a type or a property cannot be stored; the message says which.
        """
        self.entities = _by_key(entities, "entities")
        self.relations = _by_key(relations, "relations")
        self.is_open = open
        _check(self)

    def __repr__(self) -> str:
        return f"Schema({', '.join(kind.name for kind in self)}; {self.checksum})"

    def __iter__(self) -> Any:
        return iter((*self.entities.values(), *self.relations.values()))

    @property
    def single(self) -> frozenset[str]:
        """Keys of the relation types of which a head has only one at a time."""
        return frozenset(kind.key for kind in self.relations.values() if kind.is_single)

    def single_with(self, recorded: Collection[str]) -> frozenset[str]:
        """Return the `single` types of a memory: of recorded ones, those of no type here stay."""
        own = {kind.key for kind in self.relations.values()}
        return self.single.union(set(recorded) - own)

    @cached_property
    def checksum(self) -> str:
        """A checksum of names, descriptions, properties and types; equal for equal schemas."""
        shape = [
            self.is_open,
            *((k.key, k.line(), k.is_single, _json_schema(k.model)) for k in self),
        ]
        return hashlib.sha256(json.dumps(shape, sort_keys=True).encode()).hexdigest()[:12]


def load_schema(given: "Schema | str | PathLike[str] | None") -> Schema | None:
    """Return a schema, read from a file if a path is given; `None` for none.

    Raises:
        UsageError: it is not a schema.
    """
    if given is None or given == "":
        return None
    if isinstance(given, Schema):
        return given
    if not isinstance(given, str | PathLike):
        raise UsageError(f"schema is a qrmem.Schema or a TOML file, not {_brief(given)}")
    path = Path(fspath(given))
    try:
        if path.exists() and not path.is_file():
            raise UsageError(f"schema {path}: a folder, a pipe or a device, not a file")
        values = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except OSError as exc:
        raise UsageError(f"schema {path}: {exc.strerror}") from exc
    except UnicodeDecodeError as exc:
        raise UsageError(f"schema {path}: not a text in UTF-8") from exc
    except (ValueError, RecursionError) as exc:
        raise UsageError(f"schema {path}: not TOML: {exc}") from exc
    try:
        return _of_file(values)
    except UsageError as exc:
        raise UsageError(f"schema {path}: {exc}") from None


# --- a file ---------------------------------------------------------------------------------------


def _of_file(values: Mapping[str, Any]) -> Schema:
    _only(values, ("open", "entities", "relations"), "a schema")
    is_open = values.get("open", True)
    if not isinstance(is_open, bool):
        raise UsageError(f"open is {is_open!r}; write true or false")
    models: dict[str, list[type[BaseModel]]] = {}
    for kind, allowed in (("entities", ()), ("relations", ("head", "tail", "single"))):
        tables = values.get(kind, {})
        if not isinstance(tables, Mapping):
            raise UsageError(f"{kind} is not a table; write [{kind}.Name]")
        models[kind] = [_model(kind, name, table, allowed) for name, table in tables.items()]
    return Schema(models["entities"], models["relations"], open=is_open)


def _model(kind: str, name: str, table: Any, allowed: Sequence[str]) -> Any:
    place = f"[{kind}.{name}]"
    if not isinstance(table, Mapping):
        raise UsageError(f"{kind}.{name} is not a table; write {place}")
    _only(table, ("description", "properties", *allowed), place)
    _require_name(name, "type")
    fields: dict[str, Any] = {}
    properties = table.get("properties", {})
    if not isinstance(properties, Mapping):
        raise UsageError(f"{place}: properties is not a table; write [{kind}.{name}.properties]")
    for property, value in properties.items():
        _require_name(property, f"property of {name}")
        if hasattr(BaseModel, property):  # a method of the generated class
            raise UsageError(f"{name}.{property}: pydantic has such a name; rename it")
        fields[property] = _field(f"{place}: {property}", value)
    model: Any = create_model(name, __doc__=str(table.get("description", "")), **fields)
    for end in ("head", "tail"):
        if end in table:
            setattr(model, end, table[end])
    if not isinstance(single := table.get("single", False), bool):
        raise UsageError(f"{place}: single is {single!r}; write true or false")
    model.single = single
    return model


def _field(place: str, value: Any) -> tuple[Any, Any]:
    if isinstance(value, str):
        value = {"description": value}
    if not isinstance(value, Mapping):
        raise UsageError(f"{place} is {value!r}; write a description, or a table")
    _only(value, ("type", "description", "choices"), place)
    kind: Any = _KINDS.get(str(value.get("type", "text")))
    if kind is None:
        raise UsageError(f"{place}: type is {value['type']!r}; choose one of {', '.join(_KINDS)}")
    if "choices" in value:
        choices = value["choices"]
        if not isinstance(choices, list) or not choices or not all(map(_is_text, choices)):
            raise UsageError(f"{place}: choices is not a list of words")
        kind = Literal[tuple(choices)]
    return kind | None, Field(None, description=str(value.get("description", "")) or None)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _only(values: Mapping[str, Any], allowed: Sequence[str], place: str) -> None:
    if unknown := sorted(values.keys() - set(allowed)):
        raise UsageError(f"{place} has no {_brief(unknown[0])}; it has {', '.join(allowed)}")


# --- limits of stores -----------------------------------------------------------------------------


def _by_key(models: Any, what: str) -> dict[str, Kind]:
    if isinstance(models, str | bytes) or not isinstance(models, Iterable):
        raise UsageError(f"{what} is a list of pydantic models, not {_brief(models)}")
    kinds: dict[str, Kind] = {}
    for model in models:
        if not (isinstance(model, type) and issubclass(model, BaseModel)) or issubclass(
            model, RootModel
        ):
            raise UsageError(f"{what} are pydantic models (classes), not {_brief(model)}")
        _require_name(model.__name__, "type")
        kind = Kind(model)
        if kind.key in kinds:
            raise UsageError(f"two types are called {kind.name}")
        _check_model(kind)
        kinds[kind.key] = kind
    return kinds


def _check(schema: Schema) -> None:
    """Raise an error if types contradict each other."""
    kinds = list(schema)
    if not kinds:
        raise UsageError("the schema has no type")
    if len(kinds) > MOST_TYPES:
        raise UsageError(f"the schema has {len(kinds)} types; at most {MOST_TYPES} fit a prompt")
    if both := sorted(schema.entities.keys() & schema.relations.keys()):
        name = schema.entities[both[0]].name
        raise UsageError(f"{name} is a type of entities and of relations; rename one")
    for kind in schema.entities.values():
        label = camel_case(kind.key)  # as a database shows it: `document` is `Document`
        if label in OF_THE_STORE or label.startswith("Qrmem"):
            raise UsageError(f"a type may not be called {kind.name}: it is a label of the store")
    for kind in schema.relations.values():
        if kind.key in OF_THE_STORE:
            raise UsageError(f"a type may not be called {kind.name}: the store has {kind.key}")
        for end, keys in (("head", kind.heads), ("tail", kind.tails)):
            if unknown := [key for key in keys if type_key(key) not in schema.entities]:
                known_names = ", ".join(k.name for k in schema.entities.values()) or "none"
                raise UsageError(
                    f"the {end} of {kind.name} is {_brief(unknown[0])}, which is not an entity "
                    "type of"
                    f" the schema ({known_names})"
                )


def _check_model(kind: Kind) -> None:
    if len(kind.properties) > MOST_PROPERTIES:
        raise UsageError(
            f"{kind.name} has {len(kind.properties)} properties; at most {MOST_PROPERTIES} fit"
        )
    for name, words in (("", kind.words), *kind.properties.items()):
        if len(words) > LONGEST_WORDS:
            place = f"{kind.name}.{name}" if name else kind.name
            raise UsageError(
                f"the text of {place} has {len(words)} characters; at most {LONGEST_WORDS} fit"
            )
    folded: dict[str, str] = {}
    for name, field in kind.model.model_fields.items():
        _require_name(name, f"property of {kind.name}")
        if (other := folded.setdefault(name.lower(), name)) != name:
            raise UsageError(f"{kind.name}: {other} and {name} differ in case alone; rename one")
        if not isinstance(field.validation_alias, str | None):
            raise UsageError(f"{kind.name}.{name}: an alias is one word, not a choice or a path")
        if name.lower() in _PROPERTIES_OF_THE_STORE or name.lower().startswith("qrmem_"):
            raise UsageError(f"{kind.name}.{name}: the store has such a property; rename it")
        if not _is_simple(field.annotation):
            raise UsageError(
                f"{kind.name}.{name}: a property is a text, a number, a truth value, a date or one"
                " of given words, not another model or a list"
            )


def _require_name(name: object, what: str) -> None:
    text = str(name)
    is_fine = _PROPERTY.fullmatch(text) and (what != "type" or is_type(type_key(text)))
    if not is_fine:
        raise UsageError(
            f"a {what} is called {_brief(name)}: a name has letters a to z, digits and _, begins"
            " with a letter and has at most 40 characters"
        )


def _is_simple(kind: Any) -> bool:
    if get_origin(kind) is Annotated:
        return _is_simple(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return all(arg is NoneType or _is_simple(arg) for arg in get_args(kind))
    if get_origin(kind) is Literal:
        return all(isinstance(arg, str | int) for arg in get_args(kind))
    return isinstance(kind, type) and (kind in _SIMPLE or issubclass(kind, Enum))


def _own_words(model: type[BaseModel]) -> str:
    """Return a class's own docstring, not the one inherited from `BaseModel`."""
    return model.__dict__.get("__doc__") or ""


def _described(field: Any) -> str:
    """Return a property for a prompt: its description, and its allowed words if it has few."""
    kinds = field.annotation, *get_args(field.annotation)
    words = [str(word) for kind in kinds if get_origin(kind) is Literal for word in get_args(kind)]
    enums = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Enum)]
    words += [str(one.value) for kind in enums for one in kind]
    parts = [field.description or "", " or ".join(dict.fromkeys(words))]
    if date in kinds or datetime in kinds:
        parts.append("YYYY-MM-DD")
    return ": ".join(" ".join(part.split()) for part in parts if part)


def _ends(model: type[BaseModel], end: str) -> tuple[str, ...]:
    """Return the names of the types at an end of a relation."""
    value = getattr(model, end, None)
    if value is None or end in model.model_fields:
        return ()
    several = value if isinstance(value, list | tuple | set | frozenset) else (value,)
    return tuple(one.__name__ if isinstance(one, type) else str(one) for one in several)


def _json_schema(model: type[BaseModel]) -> Any:
    try:
        return model.model_json_schema()
    except Exception:  # a field that validates but has no JSON form
        return sorted(model.model_fields)


def _key(model: type[BaseModel], name: str) -> str:
    """Return the name by which a model validates a field."""
    alias = model.model_fields[name].validation_alias
    return alias if isinstance(alias, str) else name


def _fits_a_store(value: Scalar) -> bool:
    """Return whether a value can be written as JSON, with numbers of at most 64 bits."""
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def _place(error: Any) -> str:
    where = ".".join(map(str, error["loc"]))
    return f"{where}: " if where else ""


def _scalar(value: Any) -> Scalar | None:
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, date):
        return value.isoformat()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


__all__ = ["EXAMPLE", "OF_THE_STORE", "Kind", "Schema", "load_schema"]
