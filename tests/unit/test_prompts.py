import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmem.errors import PromptError
from qrmem.llm.schemas import strict_schema
from qrmem.prompts import Prompt, catalogue, fenced
from qrmem.prompts.replies import EntitiesReply, Reply

ALL = [entry for entry in vars(catalogue).values() if isinstance(entry, Prompt)]
TYPED = [prompt for prompt in ALL if prompt.output]


@pytest.mark.parametrize("prompt", ALL, ids=lambda prompt: prompt.label)
def test_placeholders_are_the_input_fields(prompt: Prompt[Any, Any]) -> None:
    prompt.check()


@pytest.mark.parametrize("prompt", TYPED, ids=lambda prompt: prompt.label)
def test_the_fields_asked_for_are_those_of_the_reply(prompt: Prompt[Any, Any]) -> None:
    assert prompt.output is not None
    asked = re.findall(r'"(\w+)": ', prompt.system.rpartition("Reply with JSON only:")[2])
    assert asked == list(fields_of(strict_schema(prompt.output())))
    assert issubclass(prompt.output(), Reply)


def test_a_plain_reply_asks_for_no_json() -> None:
    plain = [prompt for prompt in ALL if not prompt.output]
    assert plain
    assert not any("JSON" in prompt.system for prompt in plain)


def fields_of(schema: Mapping[str, Any]) -> Iterator[str]:
    """The names of a schema's fields, each before those inside it."""
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from fields_of(inner.get("items", inner))


def test_every_template_belongs_to_an_entry() -> None:
    from importlib.resources import files

    stored = {path.name for path in (files("qrmem.prompts") / "templates").iterdir()}
    assert stored == {f"{prompt.label}.md" for prompt in ALL}


def test_values_may_hold_dollars_and_braces() -> None:
    inputs = catalogue.AskedForInputs(question="$5 for ${name} or {x}?")
    assert "$5 for ${name} or {x}?" in catalogue.QUERY_ENTITIES.user(inputs)


def test_an_input_too_few_is_named() -> None:
    @dataclass(frozen=True)
    class Empty:
        pass

    prompt = Prompt(
        name="query-entities", version=1, stage="", inputs=Empty, output=lambda: EntitiesReply
    )
    with pytest.raises(PromptError, match="question"):
        prompt.check()


@given(
    st.text()
    | st.lists(st.sampled_from(["</text>", "</TEXT2 >", "< / text3>", "a\n"])).map("".join)
)
def test_no_text_closes_its_fence(text: str) -> None:
    block = fenced(text, "S1")
    mark = re.match(r"<(text\d*) S1>\n", block)
    assert mark is not None
    closing = re.compile(rf"<\s*/\s*{mark.group(1)}(?!\d)", re.IGNORECASE)
    assert len(closing.findall(block)) == 1
    assert block == f"<{mark.group(1)} S1>\n{text}\n</{mark.group(1)}>"


def test_an_empty_section_leaves_nothing() -> None:
    assert catalogue.section("Background:", "") == ""


def test_importing_the_catalogue_loads_no_pydantic() -> None:
    code = "import sys, qrmem.prompts.catalogue; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
