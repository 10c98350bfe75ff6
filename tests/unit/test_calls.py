"""Which short segments share a chat call."""

from hypothesis import given
from hypothesis import strategies as st

from qrmem.agents.reading import SHARERS, calls, shares
from qrmem.types import Job, Reading, Segment


def segment(document: str, n: int, tokens: int) -> Segment:
    return Segment(f"{document}.{n}", document, n, 0, 1, "x", tokens)


def documents(*sizes: int) -> list[Segment]:
    """Documents of one segment each."""
    return [segment(f"d{n}", 0, size) for n, size in enumerate(sizes)]


def groups(segments: list[Segment], limit: int) -> list[tuple[str, ...]]:
    return list(dict.fromkeys(shares(segments, limit).values()))


def names(made: list[list[Job]]) -> list[list[str]]:
    return [[task.segment.id for task in tasks] for tasks in made]


def test_short_documents_share_up_to_the_limit() -> None:
    assert groups(documents(40, 40, 40, 30), 100) == [("d0.0", "d1.0"), ("d2.0", "d3.0")]


def test_a_long_segment_has_its_own_call_and_parts_nobody() -> None:
    assert groups(documents(40, 51, 40), 100) == [("d0.0", "d2.0")]


def test_a_document_of_several_segments_shares_with_itself_alone() -> None:
    long = [segment("long", n, 30) for n in range(3)]
    alone = documents(30, 30)
    assert groups([alone[0], *long, alone[1]], 100) == [
        ("d0.0", "d1.0"),
        ("long.0", "long.1", "long.2"),
    ]


def test_no_more_than_a_handful_share() -> None:
    assert [len(group) for group in groups(documents(*[1] * (SHARERS + 3)), 600)] == [SHARERS, 3]


def test_nothing_shares_where_it_is_turned_off() -> None:
    assert not shares(documents(1, 1), 0)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 120)), max_size=40), st.integers(1, 200)
)
def test_every_segment_is_in_one_group_at_most_and_none_is_over_the_limit(
    given: list[tuple[int, int]], limit: int
) -> None:
    segments = [segment(f"d{d}", n, size) for n, (d, size) in enumerate(given)]
    tokens = {s.id: s.tokens for s in segments}
    found = shares(segments, limit)
    assert all(id in group for id, group in found.items())
    for group in set(found.values()):
        assert len(group) > 1
        assert sum(tokens[id] for id in group) <= limit
        assert all(found[id] is group for id in group)


def tasks(*ids: str, attempt: int = 0) -> list[Job]:
    return [Job(segment(id, 0, 10), Reading(attempt=attempt)) for id in ids]


SHARED = dict.fromkeys(("a.0", "b.0", "c.0"), ("a.0", "b.0", "c.0"))


def test_a_group_is_one_call_where_its_first_segment_stands() -> None:
    assert names(calls(tasks("x", "a", "y", "b", "c"), SHARED)) == [
        ["x.0"],
        ["a.0", "b.0", "c.0"],
        ["y.0"],
    ]


def test_the_rest_of_a_stopped_group_is_read_alone() -> None:
    assert names(calls(tasks("a", "c"), SHARED)) == [["a.0"], ["c.0"]]


def test_a_segment_that_this_phase_does_not_read_is_not_waited_for() -> None:
    assert names(calls(tasks("a", "c"), SHARED, {"a.0", "c.0", "z.0"})) == [["a.0", "c.0"]]


def test_a_segment_that_is_tried_again_is_read_alone() -> None:
    again = tasks("a", attempt=6) + tasks("b", "c")
    assert names(calls(again, SHARED)) == [["a.0"], ["b.0"], ["c.0"]]
