"""When a call is sent again: a silent server costs a whole time-out with every try."""

import asyncio

import pytest

from qrmem.errors import ModelUnavailable
from qrmem.llm.failures import Transient
from qrmem.llm.retrying import Reached, Retries

RETRIES = 4


class Silent:
    """A call that is never answered; meanwhile others may be."""

    def __init__(self, reached: Reached, *, others: int = 0) -> None:
        self.tries = 0
        self._reached = reached
        self._others = others

    async def __call__(self) -> None:
        self.tries += 1
        self._reached.answers += self._others
        raise Transient("no answer in 60 s", cause="timeout")


@pytest.mark.parametrize(
    ("answers", "others", "tries"), [(0, 0, 2), (3, 0, 2), (0, 1, 1 + RETRIES), (3, 1, 1 + RETRIES)]
)
async def test_a_call_without_an_answer_is_sent_again_while_others_are_answered(
    answers: int, others: int, tries: int
) -> None:
    reached = Reached(answers)
    call = Silent(reached, others=others)
    retries = Retries(RETRIES, reached=reached, sleep=lambda _: asyncio.sleep(0))
    with pytest.raises(ModelUnavailable, match="no answer"):
        await retries.run(call)
    assert call.tries == tries


async def test_a_refusal_is_an_answer_and_a_lost_connection_is_none() -> None:
    reached = Reached()
    reached.hear(Transient("nobody listens", cause="connection"))
    assert reached.answers == 0
    reached.hear(Transient("slow down", cause="busy"))
    reached.hear(None)
    assert reached.answers == 2
