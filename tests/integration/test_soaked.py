"""The benchmark of random operations: it notices what is lost and what reappears."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import pytest

from benchmarks.soaked import MOST_TURNS, Model


async def test_operations_drawn_at_random_lose_nothing(tmp_path: Path) -> None:
    model = Model(str(tmp_path / "m.db"), seed=11)
    async with aclosing(model.steps()) as steps:
        for _ in range(120):
            await anext(steps)
        await model._kill()
        await model.compare()
    assert model.documents
    assert 0 < len(model.turns) <= MOST_TURNS


async def deleted(model: Model) -> None:
    await model._open.delete(next(iter(model.documents)))


async def back(model: Model) -> None:
    await model._open.add({"id": "back", "text": "Ada is here again."})


async def other_text(model: Model) -> None:
    changed = {"id": next(iter(model.documents)), "text": "Another text."}
    await model._open.add(changed, update=True)


async def lost_turn(model: Model) -> None:
    await model._turn()
    model.turns.append("One that was not kept.")


@pytest.mark.parametrize("harm", [deleted, back, other_text, lost_turn])
async def test_the_soak_model_notices_lost_and_restored_rows(
    harm: Callable[[Model], Awaitable[None]], tmp_path: Path
) -> None:
    model = Model(str(tmp_path / "m.db"), seed=5)
    async with aclosing(model.steps()) as steps:
        await anext(steps)
        await model._add()
        await model.compare()
        await harm(model)
        with pytest.raises(AssertionError):
            await model.compare()
