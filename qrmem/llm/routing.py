"""Model routing: the chat models of the settings, one for each stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from qrmem.config import Settings, stages
from qrmem.errors import UsageError
from qrmem.llm.budget import Budget
from qrmem.llm.chat_model import ServerChatModel
from qrmem.llm.recorder import Recorder, Replayer
from qrmem.types import ChatModel

READING = frozenset(
    {"summary", "extract", "entities", "relations", "questions", "supplement", "fold"}
)
"""Stages that build a memory; all others answer questions."""
GROUPS = ("reading", "answering")
Value = TypeVar("Value")


def of_stage(by_stage: Mapping[str, Value], stage: str) -> Value | None:
    """Return the value of a stage, else that of its group, else that of "", else `None`."""
    names = (stage, GROUPS[stage not in READING], "")
    return next((by_stage[name] for name in names if name in by_stage), None)


@dataclass(frozen=True, slots=True)
class ChatModels:
    """The chat model of each stage, and the resources to close with them.

    Attributes:
        default: model of every stage without its own.
        others: models by stage or by a group of `GROUPS`.
        recorder: records every exchange, or `None`.
        budget: budget of an outer run that includes all runs, or `None`.
        servers: connections to close.
    """

    default: ChatModel
    others: Mapping[str, ChatModel] = field(default_factory=dict)
    recorder: Recorder | None = None
    budget: Budget | None = None
    servers: Sequence[ServerChatModel] = ()

    @property
    def names(self) -> Sequence[str]:
        """Names of all models, the default first."""
        if isinstance(self.default, Replayer):
            return self.default.models
        return tuple(dict.fromkeys(c.name for c in (self.default, *self.others.values())))

    @property
    def name(self) -> str:
        """All names joined, as ledgers record a reasoner; for a cassette the recorded name."""
        return self.default.name if self.is_replay else "+".join(self.names)

    @property
    def is_replay(self) -> bool:
        """Whether a cassette replies instead of a server."""
        return isinstance(self.default, Replayer)

    def of(self, stage: str) -> ChatModel:
        """Return the chat model of a stage."""
        return of_stage(self.others, stage) or self.default

    def name_of(self, stage: str) -> str:
        """Return the name of a stage's model."""
        if isinstance(self.default, Replayer):
            return self.default.model_for(stage)
        return self.of(stage).name

    async def aclose(self) -> None:
        """Close the recording and all connections."""
        if self.recorder is not None:
            self.recorder.close()
        for server in self.servers:
            await server.aclose()


def open_models(settings: Settings, stage_names: Sequence[str]) -> ChatModels | None:
    """Return the chat models of the settings, `None` if they name none; nothing is sent yet.

    Args:
        settings: the settings.
        stage_names: all valid names of stages.

    Raises:
        UsageError: a name, an address or a cassette is wrong.
        MissingError: the service needs a key and there is none.
    """
    if settings.replay:
        return ChatModels(Replayer(Path(settings.replay)))
    models_by_stage = chosen_stages(settings, stage_names)
    if not settings.model:
        if models_by_stage:
            raise UsageError("stage_models needs a model for the other stages: --model")
        return None
    names = dict.fromkeys((settings.model, *models_by_stage.values()))
    servers = {name: ServerChatModel(settings.with_(model=name)) for name in names}
    recorder = Recorder(Path(settings.record), "+".join(names)) if settings.record else None
    return ChatModels(
        servers[settings.model],
        {stage: servers[name] for stage, name in models_by_stage.items()},
        recorder=recorder,
        servers=tuple(servers.values()),
    )


def as_recorded(settings: Settings) -> Settings:
    """Return settings with the default window of the recorded model, if no window is chosen.

    Otherwise a replay without a model would use other lengths than the recording.

    Raises:
        UsageError: the cassette does not exist.
    """
    if settings.model or not settings.replay:
        return settings
    recorded = Replayer(Path(settings.replay)).name.partition("+")[0]
    return settings.with_(window=settings.with_(model=recorded).window)


def chosen_stages(settings: Settings, known: Sequence[str]) -> dict[str, str]:
    """Return stage to model, for the stages with their own model.

    Raises:
        UsageError: a model is set for an unknown stage.
    """
    models_by_stage = stages(settings.stage_models)
    for stage in models_by_stage:
        if stage not in (*GROUPS, *known):
            names = ", ".join((*GROUPS, *known))
            raise UsageError(f"no stage is called {stage!r} (stage_models); there are: {names}")
    return models_by_stage
