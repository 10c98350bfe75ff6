"""Model routing: the chat models that settings name, one of them for each stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from qrmem.config import Settings, stages
from qrmem.errors import UsageError
from qrmem.llm.budget import Budget
from qrmem.llm.chat_model import Chat
from qrmem.llm.recorder import Recorder, Replayer
from qrmem.types import ChatModel

READING = frozenset(
    {"summary", "extract", "entities", "relations", "questions", "supplement", "fold"}
)
"""Stages that read documents into a memory; all others answer."""
GROUPS = ("reading", "answering")


@dataclass(frozen=True, slots=True)
class ChatModels:
    """A chat model for each stage, and what has to be closed with them.

    Attributes:
        default: for every stage that has none of its own.
        others: by stage, or by one of `GROUPS`.
        recorder: writes every exchange down, or `None`.
        budget: of a wider run that all runs are part of, or `None`.
        servers: to close.
    """

    default: ChatModel
    others: Mapping[str, ChatModel] = field(default_factory=dict)
    recorder: Recorder | None = None
    budget: Budget | None = None
    servers: Sequence[Chat] = ()

    @property
    def names(self) -> Sequence[str]:
        """Names of all of them, that of most stages first."""
        if isinstance(self.default, Replayer):
            return self.default.models
        return tuple(dict.fromkeys(c.name for c in (self.default, *self.others.values())))

    @property
    def name(self) -> str:
        """All names together, as ledgers record a reasoner; of a cassette the one recorded."""
        return self.default.name if self.is_replay else "+".join(self.names)

    @property
    def is_replay(self) -> bool:
        """Whether no server is asked."""
        return isinstance(self.default, Replayer)

    def of(self, stage: str) -> ChatModel:
        """Return the chat model of a stage."""
        group = GROUPS[stage not in READING]
        return self.others.get(stage) or self.others.get(group) or self.default

    def name_of(self, stage: str) -> str:
        """Return the name of the model that a stage is sent to."""
        if isinstance(self.default, Replayer):
            return self.default.model_for(stage)
        return self.of(stage).name

    async def aclose(self) -> None:
        """Finish the recording and close all connections."""
        if self.recorder is not None:
            self.recorder.close()
        for server in self.servers:
            await server.aclose()


def open_models(settings: Settings, stage_names: Sequence[str]) -> ChatModels | None:
    """Return the chat models of the settings, `None` where they name none; nothing is sent yet.

    Args:
        stage_names: all stages that a model may be named for.

    Raises:
        UsageError: a name, an address or a cassette is not what it should be.
        MissingError: the service needs a key and there is none.
    """
    if settings.replay:
        return ChatModels(Replayer(Path(settings.replay)))
    chosen = chosen_stages(settings, stage_names)
    if not settings.model:
        if chosen:
            raise UsageError("stage_models needs a model for the other stages: --model")
        return None
    names = dict.fromkeys((settings.model, *chosen.values()))
    servers = {name: Chat(settings.with_(model=name)) for name in names}
    recorder = Recorder(Path(settings.record), "+".join(names)) if settings.record else None
    return ChatModels(
        servers[settings.model],
        {stage: servers[name] for stage, name in chosen.items()},
        recorder=recorder,
        servers=tuple(servers.values()),
    )


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
