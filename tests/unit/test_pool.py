"""Bounded parallel work: effects of a silent server, a cap or an error."""

import asyncio
from collections import Counter
from collections.abc import Callable

import pytest

from qrmem.errors import CapReached, ModelUnavailable
from qrmem.llm.parallel import each

Fails = Callable[[int, int], Exception | None]
"""Takes an item and the number of its try, from 1."""


class Work:
    """Does nothing for an item; some items fail a given number of times."""

    def __init__(
        self, fails: Callable[[int, int], Exception | None] = lambda item, n: None
    ) -> None:
        self.tries: Counter[int] = Counter()
        self.done: list[int] = []
        self._fails = fails

    async def __call__(self, item: int) -> None:
        self.tries[item] += 1
        error = self._fails(item, self.tries[item])
        # What fails takes longer: it waited for an answer.
        for _ in range(5 if error else 1):
            await asyncio.sleep(0)
        if error:
            raise error
        self.done.append(item)


def silent_for(*items: int, times: int = 10**9) -> Fails:
    return lambda item, n: ModelUnavailable("silent") if item in items and n <= times else None


@pytest.mark.parametrize("concurrency", [1, 3, 50])
async def test_everything_is_done_once(concurrency: int) -> None:
    work = Work()
    await each(range(20), work, concurrency=concurrency)
    assert sorted(work.done) == list(range(20))
    assert set(work.tries.values()) == {1}


@pytest.mark.parametrize("concurrency", [1, 2, 5])
@pytest.mark.parametrize("items", [(5,), (5, 6, 7), (18, 19), tuple(range(1, 20))])
async def test_segments_that_fail_once_are_read_later_even_if_many_fail(
    items: tuple[int, ...], concurrency: int
) -> None:
    work = Work(silent_for(*items, times=1))
    await each(range(20), work, concurrency=concurrency)
    assert sorted(work.done) == list(range(20))


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_a_server_that_never_answers_ends_the_work_at_once(concurrency: int) -> None:
    work = Work(silent_for(*range(20)))
    with pytest.raises(ModelUnavailable):
        await each(range(20), work, concurrency=concurrency)
    assert work.tries.total() <= concurrency


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_a_server_that_goes_silent_ends_the_work_soon(concurrency: int) -> None:
    work = Work(silent_for(*range(8, 1000)))
    with pytest.raises(ModelUnavailable):
        await each(range(1000), work, concurrency=concurrency)
    assert sorted(work.done) == list(range(8))
    # What was in flight, and that once more.
    assert sum(work.tries[item] for item in range(8, 1000)) <= 2 * concurrency


async def test_an_item_that_never_succeeds_stops_the_others_at_their_end_only() -> None:
    work = Work(silent_for(3))
    with pytest.raises(ModelUnavailable):
        await each(range(50), work, concurrency=4)
    assert len(work.done) == 49
    assert work.tries[3] < 10


async def test_at_a_cap_nothing_new_is_begun_and_what_is_in_flight_ends() -> None:
    work = Work(lambda item, n: CapReached("enough") if item >= 6 else None)
    with pytest.raises(CapReached):
        await each(range(50), work, concurrency=3)
    assert sorted(work.done) == list(range(6))
    assert work.tries.total() <= 6 + 3


async def test_another_error_ends_everything() -> None:
    work = Work(lambda item, n: ValueError("broken") if item == 7 else None)
    with pytest.raises(ValueError, match="broken"):
        await each(range(50), work, concurrency=3)
    assert len(work.done) < 40


async def test_a_server_that_answered_before_may_fail_at_first() -> None:
    work = Work(silent_for(0, times=1))
    await each([0], work, concurrency=2, was_answered=True)
    assert work.done == [0]
