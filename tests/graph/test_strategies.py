from itertools import pairwise
from typing import Any

import pytest
from fakes import ScriptedReasoner
from graph.worlds import WITHOUT_TREE, Part, answers_with, ask, memory
from hypothesis import given, settings
from hypothesis import strategies as st

from qrmem.errors import ModelOutputError, UsageError, WindowTooSmall
from qrmem.types import Event, Step, Verdict

CHAIN = (
    Part("Ahab hunts the whale.", (("Ahab", "hunts", "whale"),)),
    Part("The whale sank the Essex.", (("whale", "sank", "Essex"),)),
    Part("The Essex came from Nantucket.", (("Essex", "came from", "Nantucket"),)),
    Part("The cook burns soup.", (("cook", "burns", "soup"),)),
)


async def test_an_answer_in_the_hits_takes_one_call() -> None:
    reasoner = ScriptedReasoner(answers_with("hunts the whale", "Ahab"))
    outcome = await ask(await memory(*CHAIN), reasoner, "Who hunts the whale?")
    assert (outcome.status, outcome.text) == ("answered", "Ahab")
    assert len(reasoner.judged) == 1
    assert [step.action for step in outcome.steps] == ["start", "read"]


async def test_a_citation_stands_in_the_document_s_text() -> None:
    store = await memory(*CHAIN)
    reasoner = ScriptedReasoner(answers_with("sank the Essex", "the whale"))
    (citation,) = (await ask(store, reasoner, "What sank the Essex?")).citations
    document = await store.document("ns", "doc")
    assert document is not None
    assert document.text[citation.start : citation.end] == citation.quote == "sank the Essex"
    assert (citation.segment_id, citation.title) == ("s1", "Title of doc")


async def test_reflection_walks_to_a_segment_that_shares_no_word_with_the_question() -> None:
    island = Part("Nantucket is an island.", (("Nantucket", "is", "island"),))
    reasoner = ScriptedReasoner(answers_with("an island", "an island"), room=50)
    outcome = await ask(await memory(*CHAIN, island), reasoner, "What does Ahab hunt?", hits=1)
    assert (outcome.status, outcome.text) == ("answered", "an island")
    actions = [step.action for step in outcome.steps]
    assert [action for action in actions if action != "search"] == [
        *("start", "read", "expand", "read", "expand", "read")
    ]
    taken = [edge for step in outcome.steps for edge in step.edges if edge.taken]
    assert [(edge.head, edge.tail) for edge in taken] == [
        ("whale", "Essex"),
        ("Essex", "Nantucket"),
    ]


async def test_a_move_that_brings_nothing_new_costs_no_call() -> None:
    parts = (
        Part(
            "Ahab hunts. Starbuck doubts. Stubb jokes.",
            (("Ahab", "orders", "Starbuck"),),
            ("Stubb",),
        ),
        Part("Stubb sings of Flask.", (("Stubb", "sings of", "Flask"),)),
    )
    reasoner = ScriptedReasoner(answers_with("Flask", "Flask"), room=40)
    outcome = await ask(
        await memory(parts[0], Part("Starbuck knows Stubb, Ahab says.", (), ("Ahab",)), parts[1]),
        reasoner,
        "Whom does Ahab order?",
        hits=1,
    )
    reads = [step for step in outcome.steps if step.action == "read"]
    sets = [{segment.segment_id for segment in step.read} for step in reads]
    assert all(a != b for a, b in pairwise(sets))


async def test_trials_are_bounded_and_then_it_abstains() -> None:
    parts = [
        Part(f"Person{n} knows Person{n + 1}.", ((f"Person{n}", "knows", f"Person{n + 1}"),))
        for n in range(12)
    ]
    reasoner = ScriptedReasoner(room=1000)
    outcome = await ask(
        await memory(*parts), reasoner, "Whom does Person0 know?", hits=1, max_trials=3
    )
    assert (outcome.status, outcome.text, outcome.citations) == ("unanswerable", "", ())
    assert len(reasoner.judged) == 3


async def test_the_reason_of_an_abstention_counts_all_readings() -> None:
    def judge(context: Any, passages: Any, force: bool) -> Verdict:
        return Verdict(is_answerable=False, reason=f"{len(passages)} passages name no cook.")

    reasoner = ScriptedReasoner(judge, room=50)
    outcome = await ask(await memory(*CHAIN), reasoner, "What does Ahab hunt?", hits=1)
    read = {one.segment_id for step in outcome.steps for one in step.read}
    readings = len(reasoner.judged)
    assert readings > 1
    assert f"None of the {len(read)} passages that {readings} readings" in outcome.reason


@pytest.mark.parametrize("strategy", WITHOUT_TREE)
@pytest.mark.parametrize("start", ["search", "entities"])
async def test_a_memory_of_one_segment_is_read_whatever_is_asked(strategy: str, start: str) -> None:
    reasoner = ScriptedReasoner(answers_with("Ahab", "Ahab"))
    store = await memory(CHAIN[0])
    outcome = await ask(store, reasoner, "Quo vadis?", strategy, start=start)
    assert (outcome.status, outcome.text) == ("answered", "Ahab")


async def test_a_segment_larger_than_the_window_is_read_as_far_as_it_fits() -> None:
    long = Part("Ahab hunts the whale. " + "The sea is grey today. " * 60)
    reasoner = ScriptedReasoner(answers_with("hunts the whale", "Ahab"), room=40)
    outcome = await ask(await memory(long), reasoner, "What does Ahab hunt?", "reflection")
    (citation,) = outcome.citations
    assert (outcome.text, citation.quote) == ("Ahab", "hunts the whale")


async def test_used_up_trials_force_an_answer_where_that_is_wanted() -> None:
    reasoner = ScriptedReasoner(answers_with("never said", "x"))
    outcome = await ask(
        await memory(*CHAIN), reasoner, "Who hunts?", max_trials=1, on_exhausted="force"
    )
    assert (outcome.status, outcome.text) == ("forced", "a guess")
    assert [step.action for step in outcome.steps] == ["start", "read", "force"]
    # Nothing was quoted, so whole segments are cited, and marked as such.
    assert [citation.whole for citation in outcome.citations] == [True]


async def test_a_forced_answer_that_cannot_be_read_is_no_answer() -> None:
    reasoner = ScriptedReasoner(lambda context, passages, force: Verdict(is_answerable=False))
    outcome = await ask(await memory(*CHAIN), reasoner, "Who?", on_exhausted="force", max_trials=1)
    assert outcome.status == "unanswerable"


@pytest.mark.parametrize("strategy", WITHOUT_TREE)
async def test_an_empty_memory_is_unanswerable(strategy: str) -> None:
    outcome = await ask(await memory(), ScriptedReasoner(), "Who?", strategy)
    assert outcome.status == "unanswerable"


@pytest.mark.parametrize("start", ["search", "entities"])
@pytest.mark.parametrize("strategy", WITHOUT_TREE)
async def test_every_strategy_answers_from_either_start(strategy: str, start: str) -> None:
    reasoner = ScriptedReasoner(answers_with("hunts the whale", "Ahab"))
    store = await memory(*CHAIN)
    outcome = await ask(store, reasoner, "Whom does Ahab hunt, the whale?", strategy, start=start)
    assert outcome.status == "answered"


async def test_starting_from_entities_reads_their_segments() -> None:
    reasoner = ScriptedReasoner()
    await ask(await memory(*CHAIN), reasoner, "Is the Essex known?", start="entities", max_trials=1)
    assert reasoner.judged == [[CHAIN[1].text, CHAIN[2].text]]


async def test_an_unknown_name_starts_from_the_most_similar_one() -> None:
    reasoner = ScriptedReasoner()
    store = await memory(Part("Old Nantucket town lies there.", (), ("Nantucket town",)), *CHAIN)
    await ask(store, reasoner, "Is Nantucket far?", start="entities", max_trials=1)
    assert reasoner.judged[0][0] == CHAIN[2].text or "Nantucket" in reasoner.judged[0][0]


async def test_a_question_without_names_starts_from_the_nearest_entity() -> None:
    reasoner = ScriptedReasoner()
    outcome = await ask(
        await memory(*CHAIN), reasoner, "who burns soup?", start="entities", max_trials=1
    )
    assert outcome.steps[0].entities in (("cook",), ("soup",))
    assert reasoner.judged == [[CHAIN[3].text]]


async def test_entity_trial_replaces_its_entities_and_their_segments() -> None:
    reasoner = ScriptedReasoner(answers_with("Nantucket", "Nantucket"))
    reasoner.revisions = [["Nantucket"]]
    outcome = await ask(
        await memory(*CHAIN), reasoner, "Who is Ahab?", "entity-trial", start="entities"
    )
    assert outcome.status == "answered"
    assert reasoner.judged == [[CHAIN[0].text], [CHAIN[2].text]]


async def test_entity_trial_ends_when_its_entities_stay() -> None:
    reasoner = ScriptedReasoner()
    outcome = await ask(
        await memory(*CHAIN), reasoner, "Is Ahab?", "entity-trial", start="entities"
    )
    assert outcome.status == "unanswerable"
    assert len(reasoner.judged) == 1


async def test_graph_expansion_elaborates_once_and_answers_once() -> None:
    reasoner = ScriptedReasoner(answers_with("Nantucket", "Nantucket"))
    reasoner.elaborated = "The Essex came from which town?"
    store = await memory(*CHAIN)
    outcome = await ask(store, reasoner, "What sank, hunted by Ahab?", "graph-expansion", hits=1)
    assert outcome.status == "answered"
    assert [stage for stage, _ in reasoner.calls] == ["elaborate", "judge"]
    assert [step.action for step in outcome.steps][-2:] == ["elaborate", "read"]


async def test_without_navigation_it_reads_once() -> None:
    reasoner = ScriptedReasoner()
    outcome = await ask(await memory(*CHAIN), reasoner, "Who hunts?", navigation=False)
    assert [step.action for step in outcome.steps] == ["start", "read"]


async def test_without_reflection_the_reason_does_not_steer() -> None:
    parts = (
        Part("Ahab is here.", (("Ahab", "likes", "rum"), ("Ahab", "fears", "storms"))),
        Part("It is rum.", (), ("rum",)),
        Part("It storms.", (), ("storms",)),
    )

    def judge(*_: object) -> Verdict:
        return Verdict(is_answerable=False, reason="It is not said what he fears: storms?")

    taken = {}
    for reflection in (True, False):
        outcome = await ask(
            await memory(*parts),
            ScriptedReasoner(judge),
            "What about Ahab?",
            start="entities",
            reflection=reflection,
            max_trials=2,
        )
        taken[reflection] = [e.tail for step in outcome.steps for e in step.edges if e.taken]
    assert taken == {True: ["storms"], False: ["rum"]}


async def test_documents_that_were_not_asked_for_are_never_read() -> None:
    store = await memory(
        *CHAIN[:2], Part("The Essex sank in doc two.", (("Essex", "sank in", "whale"),), (), "two")
    )
    for strategy in WITHOUT_TREE:
        for start in ("search", "entities"):
            reasoner = ScriptedReasoner()
            await ask(
                store,
                reasoner,
                "What sank the Essex?",
                strategy,
                start=start,
                documents=frozenset(["two"]),
            )
            assert {text for read in reasoner.judged for text in read} <= {
                "The Essex sank in doc two."
            }


async def test_steps_are_reported_as_they_happen_and_equal_the_outcome_s() -> None:
    heard: list[Event] = []
    outcome = await ask(await memory(*CHAIN), ScriptedReasoner(), "Who hunts?", heard=heard)
    steps = [event.data["step"] for event in heard if event.kind == "step"]
    assert tuple(steps) == outcome.steps
    assert [step.n for step in steps] == list(range(1, len(steps) + 1))
    assert all(isinstance(step, Step) and step.seconds >= 0 for step in steps)


async def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="reflection, graph-expansion, entity-trial"):
        await ask(await memory(), ScriptedReasoner(), "Who?", "guessing")


async def test_a_window_without_room_is_refused_before_anything_is_asked() -> None:
    reasoner = ScriptedReasoner(room=0)
    with pytest.raises(WindowTooSmall):
        await ask(await memory(*CHAIN), reasoner, "Who?", start="entities")
    assert reasoner.calls == []


@settings(max_examples=25, deadline=None)
@given(
    room=st.integers(1, 60),
    strategy=st.sampled_from(WITHOUT_TREE),
    start=st.sampled_from(["search", "entities"]),
    edges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=25),
)
async def test_no_reading_exceeds_the_room(
    room: int, strategy: str, start: str, edges: list[tuple[int, int]]
) -> None:
    parts = [
        Part(f"Alpha{a} meets Alpha{b}.", ((f"Alpha{a}", "meets", f"Alpha{b}"),) if a != b else ())
        for a, b in edges
    ]
    reasoner = ScriptedReasoner(room=room)
    outcome = await ask(
        await memory(*parts), reasoner, "Is Alpha1 with Alpha2?", strategy, start=start
    )
    assert all(10 * len(read) <= room for read in reasoner.judged)
    assert len(reasoner.judged) <= 5
    assert outcome.status == "unanswerable"


# --- orientation ---------------------------------------------------------------------------------

ORIENTED = (
    Part("Ahab met Starbuck at sea.", (), ("Ahab",)),
    Part("Starbuck spoke of Pip then.", (), ("Pip",)),
    Part("Pip drowned.", (), ("Pip",)),
)


async def test_the_nearest_segments_are_read_with_the_question_once_and_kept() -> None:
    store = await memory(*ORIENTED)
    question = "What became of Ahab?"
    first, second, other = ScriptedReasoner(), ScriptedReasoner(), ScriptedReasoner()
    await ask(store, first, question, orient=True, nearest=2, max_trials=1)
    read = [what for stage, what in first.calls if stage == "extract"]
    assert "s0" in read
    await ask(store, second, question, orient=True, nearest=2, max_trials=1)
    assert [stage for stage, _ in second.calls] == ["judge"]
    await ask(store, other, "Where was Ahab met?", orient=True, nearest=2, max_trials=1)
    assert ("extract", "s0") in other.calls


async def test_additions_of_a_question_are_private_unless_shared() -> None:
    store = await memory(*ORIENTED)
    await ask(store, ScriptedReasoner(), "What of Ahab?", orient=True, nearest=3, max_trials=1)
    seen = {}
    asked_with: dict[str, dict[str, Any]] = {
        "same": {"orient": True, "nearest": 3},
        "other": {},
        "shared": {"share_orientation": True},
    }
    for name, options in asked_with.items():
        asked = "What of Ahab?" if name == "same" else "Who is Ahab?"
        outcome = await ask(
            store, ScriptedReasoner(), asked, start="entities", max_trials=2, **options
        )
        seen[name] = any(edge.taken for step in outcome.steps for edge in step.edges)
    assert seen == {"same": True, "other": False, "shared": True}


async def test_a_segment_that_cannot_be_oriented_is_warned_of() -> None:
    def fail(stage: str, what: str) -> Exception | None:
        return ModelOutputError("gibberish", raw="?") if stage == "extract" else None

    heard: list[Event] = []
    reasoner = ScriptedReasoner(fail=fail)
    outcome = await ask(
        await memory(*ORIENTED), reasoner, "What of Ahab?", orient=True, max_trials=1, heard=heard
    )
    assert outcome.status == "unanswerable"
    assert "gibberish" in next(e.data["message"] for e in heard if e.kind == "warning")
