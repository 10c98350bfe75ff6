"""When a call is sent again: a silent server costs a whole time-out with every try."""

import asyncio
from contextlib import suppress

import pytest

from qrmem.errors import ModelUnavailable
from qrmem.llm.failures import Cause, Transient
from qrmem.llm.retry import Retries

RETRIES = 4


class Silent:
    """A call that is never answered; meanwhile others may be."""

    def __init__(self, retries: Retries, *, others: int = 0) -> None:
        self.tries = 0
        self._retries = retries
        self._others = others

    async def __call__(self) -> None:
        self.tries += 1
        self._retries.answers += self._others
        raise Transient("no answer in 60 s", cause="timeout")


@pytest.mark.parametrize(
    ("answers", "others", "tries"), [(0, 0, 2), (3, 0, 2), (0, 1, 1 + RETRIES), (3, 1, 1 + RETRIES)]
)
async def test_a_call_without_an_answer_is_sent_again_while_others_are_answered(
    answers: int, others: int, tries: int
) -> None:
    retries = Retries(RETRIES, sleep=lambda _: asyncio.sleep(0))
    retries.answers = answers
    call = Silent(retries, others=others)
    with pytest.raises(ModelUnavailable, match="no answer"):
        await retries.run(call)
    assert call.tries == tries


async def test_a_refusal_is_an_answer_and_a_lost_connection_is_none() -> None:
    causes: list[Cause | None] = ["connection", "busy", None]
    retries = Retries(0, sleep=lambda _: asyncio.sleep(0))
    for cause, answers in zip(causes, (0, 1, 2), strict=True):

        async def call(cause: Cause | None = cause) -> None:
            if cause:
                raise Transient("no", cause=cause)

        with suppress(ModelUnavailable):
            await retries.run(call)
        assert retries.answers == answers
