import pytest
from fakes import WordTokenizer
from hypothesis import given
from hypothesis import strategies as st

from qrmem.graph.expansion import (
    TRAIL_EDGES,
    Walk,
    best_edge,
    edge_text,
    frontier,
    lead_to,
    outer_end,
    query_text,
    usual_threshold,
    weighed_edges,
    worthy_edges,
)
from qrmem.types import Relation


def edge(head: str, tail: str, description: str = "knows") -> Relation:
    key = "|".join(sorted((head, tail)))
    return Relation(key, head, tail, description, ())


EDGES = [edge("ahab", "ship"), edge("ship", "crew"), edge("whale", "ahab"), edge("crew", "port")]


def test_the_frontier_has_exactly_one_end_inside() -> None:
    walk = Walk(("ahab", "ship"))
    assert [e.key for e in frontier(EDGES, walk)] == ["ahab|whale", "crew|ship"]


def test_an_edge_that_was_taken_is_not_weighed_again() -> None:
    walk = Walk(("ahab",), frozenset({"ahab|whale"}))
    assert [e.key for e in frontier(EDGES, walk)] == ["ahab|ship"]


def test_a_loop_is_no_frontier_edge() -> None:
    assert frontier([edge("ahab", "ahab")], Walk(("ahab",))) == []


def test_the_outer_end_is_found_in_either_direction() -> None:
    assert outer_end(edge("whale", "ahab"), Walk(("ahab",))) == "whale"
    assert outer_end(edge("ahab", "ship"), Walk(("ahab",))) == "ship"


def test_ties_go_to_the_smaller_key_and_scores_compare_rounded() -> None:
    edges = [edge("ahab", "whale"), edge("ahab", "ship")]
    best = best_edge(edges, {"ahab|whale": 0.50001, "ahab|ship": 0.5})
    assert best is not None
    assert best.key == "ahab|ship"
    assert best_edge([], {}) is None


def test_a_step_visits_the_end_and_uses_the_edge_up() -> None:
    walk = Walk(("ahab",)).along(edge("whale", "ahab"))
    assert walk == Walk(("ahab", "whale"), frozenset({"ahab|whale"}))


PAIRS = st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"))


@given(st.lists(PAIRS), st.sampled_from("abcdef"))
def test_a_walk_reaches_each_entity_once_and_then_ends(
    pairs: list[tuple[str, str]], start: str
) -> None:
    edges = [edge(*pair) for pair in pairs]
    walk = Walk((start,))
    for _ in range(len(edges) + 1):
        best = best_edge(frontier(edges, walk), {})
        if best is None:
            break
        assert outer_end(best, walk) not in walk.entities
        walk = walk.along(best)
    assert frontier(edges, walk) == []
    assert len(set(walk.entities)) == len(walk.entities)


def test_an_expansion_step_takes_the_best_three_above_the_threshold() -> None:
    edges = [edge("a", name) for name in "bcdef"]
    scores = {"a|b": 0.9, "a|c": 0.2, "a|d": 0.8, "a|e": 0.7, "a|f": 0.6}
    assert [e.tail for e in worthy_edges(edges, scores, threshold=0.3)] == ["b", "d", "e"]
    assert [e.tail for e in worthy_edges(edges, scores, threshold=0.75)] == ["b", "d"]
    assert worthy_edges(edges, scores, threshold=0.95) == []


def test_without_a_threshold_only_edges_that_stand_out_are_taken() -> None:
    edges = [edge("a", name) for name in "bcdef"]
    scores = {"a|b": 9.0, "a|c": 1.0, "a|d": 1.0, "a|e": 1.1, "a|f": 0.9}
    assert [e.tail for e in worthy_edges(edges, scores)] == ["b"]


def test_edges_that_match_nothing_are_never_taken() -> None:
    edges = [edge("a", "b"), edge("a", "c")]
    assert worthy_edges(edges, {}) == []
    assert worthy_edges(edges, {"a|b": 0.0}, threshold=0.0) == []


@pytest.mark.parametrize("scores", [[1.0, 1.0, 0.0], [0.7], [0.3, 0.3, 0.3]])
def test_the_best_score_always_passes_the_usual_threshold(scores: list[float]) -> None:
    assert usual_threshold(scores) <= max(scores)


def test_new_segments_carry_the_best_score_that_led_to_them() -> None:
    add = {"s1": 0.4, "s2": 0.9}
    lead_to(add, dict.fromkeys(["s1", "s2", "s3", "s4"], 0.6), {"s4"})
    assert add == {"s1": 0.6, "s2": 0.9, "s3": 0.6}


def test_an_edge_is_compared_as_head_description_tail() -> None:
    assert edge_text(edge("k1", "k2", "lost a leg to"), {"k1": "Ahab", "k2": "Moby Dick"}) == (
        "Ahab - lost a leg to - Moby Dick"
    )


def test_the_query_is_question_reason_entities() -> None:
    assert query_text("Who?", "No name is given.", ["Ahab", "Starbuck"], WordTokenizer()) == (
        "Who? [SEP] No name is given. [SEP] Ahab, Starbuck"
    )
    assert query_text("Who?", " ", ["Ahab"], WordTokenizer()) == "Who? [SEP] Ahab"
    assert query_text("Who?", "", [], WordTokenizer()) == "Who?"


def test_a_long_reason_is_trimmed_before_question_and_entities() -> None:
    text = query_text("Who lost it?", "because " * 50, ["Ahab"], WordTokenizer(), limit=12)
    assert text.startswith("Who lost it? [SEP] because because")
    assert text.endswith("[SEP] Ahab")


@given(
    st.text("ab ", max_size=60),
    st.text("cd ", max_size=60),
    st.lists(st.text("e", min_size=1, max_size=5)),
    st.integers(1, 30),
)
def test_the_query_never_exceeds_its_limit(
    question: str, reason: str, entities: list[str], limit: int
) -> None:
    text = query_text(question, reason, entities, WordTokenizer(), limit)
    assert WordTokenizer().count(text) <= limit


def test_a_trail_keeps_the_best_edges_and_every_taken_one() -> None:
    edges = [edge("a", f"b{n:02}") for n in range(30)]
    scores = {e.key: 1 - n / 100 for n, e in enumerate(edges)}
    kept = weighed_edges(edges, scores, {"a": "Ahab"}, {"a|b29"})
    assert len(kept) == TRAIL_EDGES + 1
    assert kept[0].head == "Ahab"
    assert [e.taken for e in kept].count(True) == 1
    assert kept[-1].tail == "b29"
