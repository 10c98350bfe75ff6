import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qrmem.errors import PromptError
from qrmem.llm.replies import strict_schema
from qrmem.prompts import Prompt, fenced, load_prompts
from qrmem.prompts.replies import AnswerReply, CodeReply, JudgeReply, RatingReply, Reply

SETS = [load_prompts(name) for name in ("", "paper", "paper,story")]
ALL = [prompt for prompts in SETS for prompt in prompts.values()]
JSON = [prompt for prompt in ALL if prompt.output and prompt.form == "json"]


@pytest.mark.parametrize("prompt", JSON, ids=lambda prompt: prompt.label)
def test_the_fields_asked_for_are_those_of_the_reply(prompt: Prompt) -> None:
    words = f"{prompt.system}\n{prompt.template}"
    asked = re.findall(r'"(\w+)": ', words.rpartition("Reply with JSON only:")[2])
    assert prompt.output is not None
    assert asked == list(fields_of(strict_schema(prompt.output)))
    assert issubclass(prompt.output, Reply)


def test_prompts_for_plain_text_do_not_mention_json() -> None:
    plain = [prompt for prompt in ALL if not prompt.output or prompt.form == "text"]
    assert plain
    assert not any("JSON" in prompt.system + prompt.template for prompt in plain)


def fields_of(schema: Mapping[str, Any]) -> Iterator[str]:
    """The names of a schema's fields, each before those inside it."""
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from fields_of(inner.get("items", inner))


def test_values_may_hold_dollars_and_braces() -> None:
    made = load_prompts()["query-entities"].user({"question": "$5 for ${name} or {?x?}?"})
    assert "$5 for ${name} or {?x?}?" in made


def test_empty_parts_have_no_heading() -> None:
    trial = load_prompts()["trial"]
    slots = dict.fromkeys(trial.slots, "x")
    assert "Why they do not do:" in trial.user(slots)
    assert "Why they do not do:" not in trial.user({**slots, "reason": ""})


def test_a_set_is_known_by_its_words(tmp_path: Path) -> None:
    default, paper, _ = SETS
    assert default.label.startswith("default ")
    assert len({prompts.checksum for prompts in SETS}) == len(SETS)
    own = tmp_path / "mine"
    own.mkdir()
    (own / "judge.md").write_text("$passages\n$question")
    mine = load_prompts(str(own))
    assert mine.label == f"mine {mine.checksum}"
    assert mine.checksum not in (default.checksum, paper.checksum)
    slots = dict(passages="P", question="Q", notes="N", statements="", as_of="")
    assert mine["judge"].user(slots) == "P\nQ"
    assert mine["answer"] == default["answer"]
    both = load_prompts(f"paper,{own}")
    assert both["answer"] == paper["answer"]
    assert both["judge"].template == mine["judge"].template


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("judge.md", "$question", r"lacks the slot \$passages; the slots of judge are"),
        ("judge.md", "$passages $question $x", r"unknown slot \$x; the slots of judge are"),
        ("jugde.md", "$passages $question", "no prompt is called 'jugde'"),
        ("judge.md", "---\nform: xml\n---\n$passages $question", "choose json or text"),
        ("judge.md", "---\nstage: x\n---\n$passages $question", "the stage of judge is judge"),
        ("judge.md", "---\nslot: x\n---\n$passages $question", "no field is called slot"),
        ("judge.txt", "$passages $question", "holds no template"),
        ("judge.md", "$question\n=== user ===\n$passages $question", "move it below"),
    ],
)
def test_a_folder_that_does_not_fit_is_one_clear_error(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(PromptError, match=said):
        load_prompts(str(tmp_path))


def test_the_inputs_of_the_printed_prompts_suffice(tmp_path: Path) -> None:
    """QRMeM, Appendix E: what the question shapes, and the summary, are not in all of them."""
    printed = {
        "judge": "$passages $question",
        "entities": "$background $segment",
        "relations": "$segment $marked",
        "summary": "$text",
        "fold": "$question $background $segment_1 $relation_1 $segment_2 $relation_2",
    }
    for name, text in printed.items():
        (tmp_path / f"{name}.md").write_text(text)
    found = load_prompts(f"paper,{tmp_path}")
    assert {name: found[name].template for name in printed} == printed


def test_a_set_that_is_not_there_is_named() -> None:
    with pytest.raises(
        PromptError, match=r"prompts=papre: there is no folder and no set \(paper, story\)"
    ):
        load_prompts("papre")


def test_values_without_a_slot_are_named() -> None:
    with pytest.raises(PromptError, match="is filled with x: the slots of"):
        load_prompts()["query-entities"].user({"x": ""})


@pytest.mark.parametrize(
    ("text", "action", "answer"),
    [
        ("Reasoning: It is said.\nAction: -2\nAnswer: Ada", -2, "Ada"),
        ("##########\nReasoning: It is said. Action: -2, (A) Ada\n##########", -2, "(A) Ada"),
        ("Reasoning: no.\nAction: -1", -1, ""),
        ("**Reasoning:** so.\n\n**Action:** -2\n\n**Answer:** Ada", -2, "Ada"),
        ("**Reasoning:** so.\n**Action: -2**\n**Answer: Ada**", -2, "Ada"),
        ("Reasoning: a\nAction: -1\nReasoning: no, b\nAction: 2, Answer: Bo", -2, "Bo"),
    ],
)
def test_a_verdict_is_read_in_the_papers_form(text: str, action: int, answer: str) -> None:
    read = JudgeReply.from_words(text, is_asked=False)
    assert read is not None
    assert (read.action, read.answer) == (action, answer)
    assert read.reasoning


def test_other_forms_are_read_where_they_are_asked_for() -> None:
    answer = AnswerReply.from_words("Reasoning: so\nAnswer: Ada", is_asked=True)
    assert answer is not None
    assert answer.answer == "Ada"
    assert AnswerReply.from_words("Ada", is_asked=False) is None
    rating = RatingReply.from_words("Right. Rating: [[70]]", is_asked=True)
    assert rating is not None
    assert rating.rating == 70
    code = CodeReply.from_words("```python\n  return x\n```", is_asked=True)
    assert code is not None
    assert code.code == "  return x\n"


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


@pytest.mark.parametrize(
    "tag",
    [
        "</ｔｅｘｔ>",
        "＜/text＞",
        "＜／ＴＥＸＴ＞",
        "</te\u200bxt>",
        "<\u200b/text>",
        "</\u2060text>",
        "<\ufe0f/text>",
    ],
)
def test_a_tag_in_other_signs_that_look_alike_closes_no_fence(tag: str) -> None:
    assert fenced(f"a {tag} b").startswith("<text2>")


def test_loading_prompts_loads_no_pydantic() -> None:
    code = "import sys, qrmem.prompts as p; p.load_prompts(); sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
