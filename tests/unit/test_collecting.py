import gc
from collections.abc import Iterator

import pytest

from qrmem.collecting import LEAST_OLDER, LEAST_THRESHOLD, seldom_collecting


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[tuple[int, int, int]]:
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)


def test_the_collector_looks_seldom_until_the_last_of_several_is_done() -> None:
    gc.set_threshold(700, 10, 10)
    first, second = seldom_collecting(), seldom_collecting()
    first.__enter__()
    second.__enter__()
    assert gc.get_threshold() == (LEAST_THRESHOLD, LEAST_OLDER, 10)
    first.__exit__(None, None, None)
    assert gc.get_threshold() == (LEAST_THRESHOLD, LEAST_OLDER, 10)
    second.__exit__(None, None, None)
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [(0, 10, 10), (10 * LEAST_THRESHOLD, 10 * LEAST_OLDER, 5)])
def test_a_collector_that_is_off_or_looks_more_seldom_is_left_alone(
    chosen: tuple[int, int, int],
) -> None:
    gc.set_threshold(*chosen)
    with seldom_collecting():
        assert gc.get_threshold() == chosen
    assert gc.get_threshold() == chosen


def test_an_error_puts_the_thresholds_back() -> None:
    gc.set_threshold(700, 10, 10)
    with pytest.raises(ValueError, match="broken"), seldom_collecting():
        raise ValueError("broken")
    assert gc.get_threshold() == (700, 10, 10)
