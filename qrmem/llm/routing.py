"""Model routing: the chat models that settings name, one of them for each stage."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from qrmem.config import Settings, stages
from qrmem.errors import UsageError
from qrmem.llm.chat import Call, Chat, send
from qrmem.llm.recorder import Recorder, Replayer
from qrmem.types import ChatModel, ChatReply, ChatRequest

READING = frozenset(
    {"summary", "extract", "entities", "relations", "questions", "supplement", "fold"}
)
"""Stages that read documents into a memory; all others answer."""
GROUPS = ("reading", "answering")


class RoutedChat:
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
        return await self.send(Call(request))

    async def send(self, call: Call) -> ChatReply:
        """Send a call to its stage's model."""
        return await send(self._chat(call.request.stage), call)

    def over(self, wrap: Callable[[ChatModel], ChatModel]) -> "RoutedChat":
        """Return the same with each model wrapped."""
        others = {stage: wrap(chat) for stage, chat in self._others.items()}
        return RoutedChat(wrap(self._default), others)

    def _chat(self, stage: str) -> ChatModel:
        group = GROUPS[stage not in READING]
        return self._others.get(stage) or self._others.get(group) or self._default


@dataclass(frozen=True, slots=True)
class OpenedChat:
    """A chat model, and what has to be closed with it.

    Attributes:
        recorder: what is recorded to, or `None`.
        is_replay: whether no server is asked.
    """

    chat: ChatModel
    servers: Sequence[Chat] = ()
    recorder: Recorder | None = None
    is_replay: bool = False

    def wrapped(self, cached: Callable[[ChatModel], ChatModel] | None) -> ChatModel:
        """Return the chat model of one run.

        Args:
            cached: keeps the replies of a model; `None`: they are not kept.
        """
        chat = self.chat
        if cached is not None and not self.is_replay:
            chat = chat.over(cached) if isinstance(chat, RoutedChat) else cached(chat)
        # Over the cache, so that a recording holds all that a replay will ask for.
        return self.recorder.recording(chat) if self.recorder else chat

    async def aclose(self) -> None:
        """Finish the recording and close all connections."""
        if self.recorder is not None:
            self.recorder.close()
        for server in self.servers:
            await server.aclose()


def open_models(settings: Settings, stage_names: Sequence[str]) -> OpenedChat | None:
    """Return the chat model of the settings, `None` where they name none; nothing is sent yet.

    Args:
        stage_names: all stages that a model may be named for.

    Raises:
        UsageError: a name, an address or a cassette is not what it should be.
        MissingError: the service needs a key and there is none.
    """
    if settings.replay:
        return OpenedChat(Replayer(Path(settings.replay)), is_replay=True)
    chosen = chosen_stages(settings, stage_names)
    if not settings.model:
        if chosen:
            raise UsageError("stage_models needs a model for the other stages: --model")
        return None
    names = dict.fromkeys((settings.model, *chosen.values()))
    servers = {name: Chat(settings.with_(model=name)) for name in names}
    default = servers[settings.model]
    others = {stage: servers[name] for stage, name in chosen.items()}
    chat = RoutedChat(default, others) if others else default
    recorder = Recorder(Path(settings.record), chat) if settings.record else None
    return OpenedChat(chat, tuple(servers.values()), recorder)


def as_recorded(settings: Settings) -> Settings:
    """Return settings with the usual window of the model that was recorded, where none is chosen.

    A replay that names no model would else ask for other lengths than the recording did.

    Raises:
        UsageError: there is no such cassette.
    """
    if settings.model or not settings.replay:
        return settings
    recorded = Replayer(Path(settings.replay)).name.partition("+")[0]
    return settings.with_(window=settings.with_(model=recorded).window)


def chosen_stages(settings: Settings, known: Sequence[str]) -> dict[str, str]:
    """Return model by stage, for the stages that have one of their own.

    Raises:
        UsageError: a model is named for a stage that there is not.
    """
    chosen = stages(settings.stage_models)
    for stage in chosen:
        if stage not in (*GROUPS, *known):
            names = ", ".join((*GROUPS, *known))
            raise UsageError(f"no stage is called {stage!r} (stage_models); there are: {names}")
    return chosen


__all__ = ["OpenedChat", "RoutedChat", "as_recorded", "chosen_stages", "open_models"]
