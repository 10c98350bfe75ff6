"""Test doubles that speak the ports. No mocks, no patching."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from qrmem.ports import ChatReply, ChatRequest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Scripted = str | ChatReply | Exception | Callable[[ChatRequest], str | ChatReply]


class ScriptedModel:
    """Answers from a list and remembers what it was asked; an answer too few or too many fails."""

    def __init__(self, *answers: Scripted, name: str = "scripted") -> None:
        self.name = name
        self._answers = list(answers)
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        await asyncio.sleep(0)
        said = request.messages[-1].content[:80]
        assert self._answers, f"unexpected call {len(self.requests)} ({request.stage}): {said}"
        answer = self._answers.pop(0)
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, str):
            answer = ChatReply(answer, model=self.name)
        return replace(answer, model=answer.model or self.name)

    def assert_all_used(self) -> None:
        assert not self._answers, f"{len(self._answers)} answers never asked for"


class HashEmbedder:
    """Same text, same unit vector, on every machine; like words give like vectors.

    Each word adds one pseudo-random direction, so that texts that share words are near.
    """

    def __init__(self, dimension: int = 32, name: str = "hash", window: int = 200) -> None:
        self.name = name
        self.dimension = dimension
        self._window = window
        self.embedded: list[str] = []

    def windows(self, text: str) -> Sequence[str]:
        words = text.split()
        if len(words) <= self._window:
            return [text]
        return [
            " ".join(words[at : at + self._window]) for at in range(0, len(words), self._window)
        ]

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> "NDArray[np.float32]":
        import numpy as np

        await asyncio.sleep(0)
        self.embedded += texts
        rows = [self._vector(text) for text in texts]
        return np.array(rows, dtype=np.float32).reshape(len(texts), self.dimension)

    def _vector(self, text: str) -> "NDArray[np.float64]":
        import numpy as np

        total = np.full(self.dimension, 1e-6)
        for word in text.lower().split():
            digest = hashlib.sha256(word.strip(".,;:!?\"'()").encode()).digest()
            repeated = digest * (self.dimension // len(digest) + 1)
            total += np.frombuffer(repeated, dtype=np.uint8)[: self.dimension] / 127.5 - 1
        unit: NDArray[np.float64] = total / np.linalg.norm(total)
        return unit
