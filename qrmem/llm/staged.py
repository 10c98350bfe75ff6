"""Another model for some stages: a cheap one to read, a strong one to answer."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from qrmem.errors import UsageError
from qrmem.llm.exchange import Exchange, send
from qrmem.types import ChatModel, ChatReply, ChatRequest

READING = frozenset(
    {"summary", "extract", "entities", "relations", "questions", "supplement", "fold"}
)
"""Stages that read documents into a memory; all others answer."""
GROUPS = ("reading", "answering")


@runtime_checkable
class Staged(Protocol):
    """A chat model that has another model for some stages."""

    @property
    def models(self) -> Sequence[str]:
        """Names of all of them."""
        ...

    def model_for(self, stage: str) -> str:
        """Return the name of the one that a stage is sent to."""
        ...


def models_of(chat: ChatModel) -> Sequence[str]:
    """Return the names of all models behind a chat model."""
    return chat.models if isinstance(chat, Staged) else (chat.name,)


def model_for(chat: ChatModel, stage: str) -> str:
    """Return the name of the model that a stage is sent to."""
    return chat.model_for(stage) if isinstance(chat, Staged) else chat.name


class StagedChat:
    """Several models of one server behind one name."""

    def __init__(self, default: ChatModel, others: Mapping[str, ChatModel]) -> None:
        """Take a model for every stage that has none of its own.

        Args:
            others: by stage, or by one of `GROUPS`.
        """
        self._default = default
        self._others = others

    @property
    def models(self) -> Sequence[str]:
        """Names of all of them, that of most stages first."""
        return tuple(dict.fromkeys(c.name for c in (self._default, *self._others.values())))

    @property
    def name(self) -> str:
        """All names together, as ledgers record a reasoner."""
        return "+".join(self.models)

    def model_for(self, stage: str) -> str:
        """Return the name of the model that a stage is sent to."""
        return self._chat(stage).name

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Send a request to its stage's model."""
        return await self.send(Exchange(request))

    async def send(self, exchange: Exchange) -> ChatReply:
        """Send an exchange to its stage's model."""
        return await send(self._chat(exchange.request.stage), exchange)

    def over(self, wrap: Callable[[ChatModel], ChatModel]) -> "StagedChat":
        """Return the same with each model wrapped."""
        others = {stage: wrap(chat) for stage, chat in self._others.items()}
        return StagedChat(wrap(self._default), others)

    def _chat(self, stage: str) -> ChatModel:
        group = GROUPS[stage not in READING]
        return self._others.get(stage) or self._others.get(group) or self._default


def named_stages(chosen: Mapping[str, str], known: Sequence[str]) -> None:
    """Refuse a model for a stage that there is not.

    Raises:
        UsageError: with the stages that there are.
    """
    for stage in chosen:
        if stage not in (*GROUPS, *known):
            names = ", ".join((*GROUPS, *known))
            raise UsageError(f"no stage is called {stage!r} (stage_models); there are: {names}")


__all__ = ["GROUPS", "READING", "Staged", "StagedChat", "model_for", "models_of", "named_stages"]
