from hypothesis import given
from hypothesis import strategies as st

from qrmem.graphstore.relations import LONGEST, fold
from qrmem.types import Fact


def fact(head: str, tail: str, description: str, segment: int = 0) -> Fact:
    return Fact(head, tail, description, f"s{segment}")


def test_there_is_one_relation_for_each_unordered_pair() -> None:
    relations = fold(
        [
            fact("b", "a", "is the father of"),
            fact("a", "c", "knows"),
            fact("a", "b", "is the daughter of", 4),
        ]
    )
    assert [r.key for r in relations] == ["a|b", "a|c"]
    assert (relations[0].head, relations[0].tail) == ("b", "a")
    assert relations[0].description == "is the father of; ← is the daughter of"
    assert relations[0].segments == ("s0", "s4")


def test_opposite_relations_are_never_merged() -> None:
    (relation,) = fold([fact("a", "b", "killed the man"), fact("b", "a", "killed the man")])
    assert relation.description == "killed the man; ← killed the man"


def test_near_duplicates_are_shown_once_and_all_facts_are_kept() -> None:
    facts = [
        fact("a", "b", "hunts the white whale"),
        fact("a", "b", "hunts the white whale again", 3),
        fact("a", "b", "lost a leg to it", 5),
    ]
    (relation,) = fold(facts)
    assert relation.description == "hunts the white whale; lost a leg to it"
    assert relation.facts == tuple(facts)


def test_an_entity_has_no_relation_with_itself() -> None:
    assert fold([fact("a", "a", "is")]) == []


WORDS = st.sampled_from(["saw", "met", "killed", "the", "old", "whale", "x" * 200])
FACTS = st.lists(
    st.builds(
        fact,
        st.sampled_from("abc"),
        st.sampled_from("abc"),
        st.lists(WORDS, min_size=1, max_size=9).map(" ".join),
        st.integers(0, 9),
    )
)


@given(FACTS)
def test_folding_loses_no_fact_and_stays_within_its_length(facts: list[Fact]) -> None:
    relations = fold(facts)
    kept = [f for relation in relations for f in relation.facts]
    assert sorted(map(repr, kept)) == sorted(repr(f) for f in facts if f.head != f.tail)
    assert all(0 < len(relation.description) <= LONGEST for relation in relations)
    assert len({relation.key for relation in relations}) == len(relations)


def test_a_description_that_is_cut_says_so() -> None:
    (relation,) = fold([fact("a", "b", "wrote " * 200)])
    assert len(relation.description) == LONGEST
    assert relation.description.endswith("…")
