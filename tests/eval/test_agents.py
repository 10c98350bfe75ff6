"""MemWalker and ReadAgent step by step, with a scripted model."""

import json

from fakes import ScriptedModel

from qrmem.agents import baselines
from qrmem.answering.with_model import PromptedReasoner
from qrmem.config import Settings
from qrmem.llm.prompting import Caller, TokenBudget
from qrmem.prompts import load_prompts
from qrmem.text.tokens import BuiltinTokenizer
from qrmem.types import AskContext, ChatRequest, Passage, Segment, Verdict

COUNTER = BuiltinTokenizer()
ASKED = AskContext("Where was Strake born?", window=2000)


def leaves(*texts: str) -> list[Passage]:
    return [
        Passage("S99", Segment(f"s{n}", "d", n, 0, len(text), text, COUNTER.count(text)), "Tale")
        for n, text in enumerate(texts)
    ]


def caller(model: ScriptedModel) -> Caller:
    return Caller(model, TokenBudget(COUNTER), load_prompts())


def reasoner(model: ScriptedModel) -> PromptedReasoner:
    return PromptedReasoner(model, COUNTER, mode="compact", settings=Settings())


def summary(text: str) -> str:
    return json.dumps({"summary": text})


def triage(part: int) -> str:
    return json.dumps({"reasoning": f"part {part}", "part": part})


def judged(action: int, answer: str = "") -> str:
    return json.dumps({"reasoning": "so", "action": action, "answer": answer, "quotes": []})


def shown(request: ChatRequest) -> str:
    return request.messages[-1].content


async def test_a_tree_has_eight_children_at_most_and_one_root() -> None:
    model = ScriptedModel(*[summary(f"summary {n}") for n in range(9 + 2 + 1)])
    tree = await baselines.build_tree(caller(model), leaves(*["text"] * 9), 2000)
    assert [len(node.children) for node in tree] == [0] * 9 + [8, 1, 2]
    model.assert_all_used()


async def walked(model: ScriptedModel, *, is_forced: bool = True) -> tuple[Verdict, list[str]]:
    """Return the verdict on a small tree, and the actions that led to it."""
    text = leaves("The Marigold sank.", "Strake was born in Vantry.", "The inn is old.")
    made = [baselines.Node(f"about {n}", passage=leaf) for n, leaf in enumerate(text)]
    tree = [*made, baselines.Node("all of it", (0, 1, 2))]
    walk = baselines.TreeWalk(tree, caller(model), reasoner(model), ASKED)
    verdict, steps = await baselines.walk(walk, is_forced=is_forced)
    model.assert_all_used()
    return verdict, [step.action for step in steps]


async def test_a_part_that_did_not_help_is_not_offered_again() -> None:
    model = ScriptedModel(triage(0), judged(-1), triage(0), judged(-2, "Vantry"))
    verdict, actions = await walked(model)
    assert (verdict.answer, verdict.status) == ("Vantry", "answered")
    assert "about 0" in shown(model.requests[0])
    assert "about 0" not in shown(model.requests[2])
    assert "all of it" in shown(model.requests[1]), "the way down is known"
    assert actions == ["triage", "read", "back", "triage", "read"]


async def test_without_a_useful_part_an_answer_is_forced_from_the_last_reading() -> None:
    forced = json.dumps({"reasoning": "", "answer": "Corrin", "quotes": []})
    model = ScriptedModel(triage(2), judged(-1), triage(-1), forced)
    verdict, _ = await walked(model)
    assert (verdict.answer, verdict.status) == ("Corrin", "forced")
    assert "The inn is old." in shown(model.requests[3])


async def test_without_a_useful_part_and_without_force_there_is_no_answer() -> None:
    verdict, _ = await walked(ScriptedModel(triage(-1)), is_forced=False)
    assert not verdict.is_answerable


async def test_a_choice_outside_the_parts_is_no_choice() -> None:
    _, actions = await walked(ScriptedModel(triage(7)), is_forced=False)
    assert actions == ["triage"]


async def test_a_walk_ends_after_so_many_moves() -> None:
    parts = leaves(*["The inn is old."] * 40)
    made = [baselines.Node(f"about {n}", passage=leaf) for n, leaf in enumerate(parts)]
    tree = [*made, baselines.Node("all of it", tuple(range(40)))]
    half = baselines.MOVES // 2
    model = ScriptedModel(*[reply for _ in range(half) for reply in (triage(0), judged(-1))])
    walk = baselines.TreeWalk(tree, caller(model), reasoner(model), ASKED)
    verdict, _ = await baselines.walk(walk, is_forced=False)
    assert not verdict.is_answerable
    model.assert_all_used()


async def test_a_page_ends_where_the_model_says() -> None:
    pieces = leaves(*[f"{n} " + "word " * 99 for n in range(10)])
    gists = [json.dumps({"gist": f"gist {n}"}) for n in range(3)]
    # Marks after 300, 400, 500, 600 words; the second page may end after as many, then a rest.
    ends = [json.dumps({"label": 1}), json.dumps({"label": 0})]
    model = ScriptedModel(*ends, *gists)
    pages = await baselines.read_pages(caller(model), pieces, 4000)
    assert [page.full.segment.text.count("word") for page in pages] == [396, 297, 297]
    assert [page.gist for page in pages] == ["gist 0", "gist 1", "gist 2"]
    assert "⟨3⟩" in shown(model.requests[0])
    assert "⟨4⟩" not in shown(model.requests[0])


async def test_short_texts_are_one_page_and_no_break_is_asked_for() -> None:
    model = ScriptedModel(json.dumps({"gist": "short"}))
    pages = await baselines.read_pages(caller(model), leaves("A few words.", " And more."), 2000)
    assert [page.full.segment.text for page in pages] == ["A few words. And more."]


async def looked_up(model: ScriptedModel, *, is_sequential: bool) -> tuple[Verdict, list[str]]:
    """Return the verdict, and the ids of the pages that were looked up, in order."""
    texts = leaves("The Marigold sank in May.", "Strake was born in Vantry.", "The inn is old.")
    pages = [baselines.GistPage(text, f"gist {n}") for n, text in enumerate(texts)]
    run = baselines.PageReader(pages, caller(model), reasoner(model), ASKED, is_sequential, 3)
    verdict, steps = await baselines.answer_by_pages(run, is_forced=True)
    model.assert_all_used()
    return verdict, [one.segment_id for one in steps[-1].read]


def wanted(*pages: int) -> str:
    return json.dumps({"reasoning": "", "pages": list(pages)})


ANSWER = json.dumps({"reasoning": "", "answer": "Vantry", "quotes": []})


async def test_in_parallel_pages_are_looked_up_at_once() -> None:
    model = ScriptedModel(wanted(1, 9, 1, 0), ANSWER)
    _, read = await looked_up(model, is_sequential=False)
    assert read == ["s1", "s0"]
    last = shown(model.requests[-1])
    assert "The Marigold sank in May." in last
    assert "gist 2" in last
    assert "gist 1" not in last


async def test_in_sequence_pages_are_looked_up_until_nothing_more_is_wanted() -> None:
    model = ScriptedModel(wanted(2), wanted(1), wanted(), ANSWER)
    verdict, read = await looked_up(model, is_sequential=True)
    assert read == ["s2", "s1"]
    assert "The inn is old." in shown(model.requests[1]), "seen in full from then on"
    assert verdict.answer == "Vantry"
