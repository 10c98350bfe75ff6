from random import Random

from hypothesis import given
from hypothesis import strategies as st

from qrmem.agents.search.run import Packed, PackingCandidate, pack
from qrmem.types import Segment


def segment(name: str, index: int = 0, tokens: int = 100, document: str = "d") -> Segment:
    return Segment(name, document, index, 0, 0, "", tokens)


def packed(imp: list[PackingCandidate], add: list[PackingCandidate], room: int) -> Packed:
    return pack(imp, add, room=room, size=lambda s: s.tokens)


def ids(weighed: tuple[PackingCandidate, ...]) -> list[str]:
    return [w.segment.id for w in weighed]


def test_all_is_read_in_document_order_if_it_fits() -> None:
    result = packed(
        [PackingCandidate(segment("c", 2), 0.9), PackingCandidate(segment("a", 0), 0.1)],
        [
            PackingCandidate(segment("b", 1), 0.5),
            PackingCandidate(segment("z", 0, document="e"), 0.8),
        ],
        room=400,
    )
    assert ids(result.read) == ["a", "b", "c", "z"]
    assert result.dropped == ()
    assert result.tokens == 400


def test_the_lowest_of_the_added_are_dropped_first() -> None:
    imp = [PackingCandidate(segment("a", 0), 0.01)]
    add = [
        PackingCandidate(segment("b", 1), 0.2),
        PackingCandidate(segment("c", 2), 0.7),
        PackingCandidate(segment("d", 3), 0.3),
    ]
    result = packed(imp, add, room=210)
    assert ids(result.read) == ["a", "c"]
    assert ids(result.dropped) == ["d", "b"]


def test_an_important_set_over_the_room_is_cut_by_similarity_and_nothing_is_added() -> None:
    imp = [PackingCandidate(segment(str(n), n), score) for n, score in enumerate((0.1, 0.9, 0.5))]
    result = packed(imp, [PackingCandidate(segment("x", 9, tokens=1), 1.0)], room=250)
    assert ids(result.read) == ["1", "2"]
    assert ids(result.dropped) == ["x", "0"]


def test_a_segment_larger_than_the_room_takes_nobody_elses_place() -> None:
    imp = [
        PackingCandidate(segment("huge", 0, tokens=900), 1.0),
        PackingCandidate(segment("a", 1), 0.5),
    ]
    add = [
        PackingCandidate(segment("b", 2, tokens=250), 0.9),
        PackingCandidate(segment("c", 3), 0.8),
    ]
    assert ids(packed(imp, [], room=300).read) == ["a"]
    assert ids(packed(imp[1:], add, room=300).read) == ["a", "c"]


def test_among_equal_scores_the_earlier_segment_stays() -> None:
    add = [PackingCandidate(segment("b", 5), 0.50001), PackingCandidate(segment("a", 2), 0.5)]
    assert ids(packed([], add, room=100).read) == ["a"]
    assert ids(packed([], add[::-1], room=100).read) == ["a"]


def test_a_segment_given_twice_is_read_once_with_its_best_score() -> None:
    twice = segment("a", 0)
    result = packed(
        [PackingCandidate(twice, 0.2)],
        [PackingCandidate(twice, 0.9), PackingCandidate(segment("b", 1), 0.1)],
        room=1000,
    )
    assert ids(result.read) == ["a", "b"]
    assert result.tokens == 200


def test_without_room_nothing_is_read() -> None:
    assert packed([PackingCandidate(segment("a"), 1.0)], [], room=0).read == ()
    assert packed([PackingCandidate(segment("a"), 1.0)], [], room=-5).read == ()


WEIGHED = st.builds(
    lambda n, tokens, score: PackingCandidate(segment(str(n), n % 7, tokens, f"d{n % 3}"), score),
    st.integers(0, 20),
    st.integers(0, 700),
    st.floats(-1, 20),
)


@given(st.lists(WEIGHED), st.lists(WEIGHED), st.integers(-10, 3000))
def test_the_room_is_never_exceeded_and_nothing_is_lost(
    imp: list[PackingCandidate], add: list[PackingCandidate], room: int
) -> None:
    # One size per segment, as from any counter.
    sizes = {w.segment.id: w.segment.tokens for w in (*imp, *add)}
    result = pack(imp, add, room=room, size=lambda s: sizes[s.id])
    read, dropped = ids(result.read), ids(result.dropped)
    assert sum(sizes[i] for i in read) == result.tokens <= max(room, 0)
    assert sorted(read + dropped) == sorted(sizes)
    places = [(w.segment.document_id, w.segment.index) for w in result.read]
    assert places == sorted(places)


@given(st.lists(WEIGHED, unique_by=lambda w: w.segment.id), st.integers(0, 3000), st.randoms())
def test_the_order_of_arrival_does_not_matter(
    imp: list[PackingCandidate], room: int, rng: Random
) -> None:
    shuffled = imp[:]
    rng.shuffle(shuffled)
    assert packed(imp, [], room) == packed(shuffled, [], room)
