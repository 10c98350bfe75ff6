"""Opens the chat models that the settings name: one, one for each stage, or a cassette."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from qrmem.config import Settings, stages
from qrmem.errors import UsageError
from qrmem.llm.cassette import Player, Tape
from qrmem.llm.chat import Chat, open_chat
from qrmem.llm.staged import StagedChat, named_stages
from qrmem.types import ChatModel


@dataclass(frozen=True, slots=True)
class OpenedChat:
    """A chat model, and what has to be closed with it.

    Attributes:
        tape: what is recorded on, or `None`.
        is_replay: whether no server is asked.
    """

    chat: ChatModel
    servers: Sequence[Chat] = ()
    tape: Tape | None = None
    is_replay: bool = False

    def wrapped(self, cached: Callable[[ChatModel], ChatModel] | None) -> ChatModel:
        """Return the chat model of one run.

        Args:
            cached: keeps the replies of a model; `None`: they are not kept.
        """
        chat = self.chat
        if cached is not None and not self.is_replay:
            chat = chat.over(cached) if isinstance(chat, StagedChat) else cached(chat)
        # Over the cache, so that a tape holds all that a replay will ask for.
        return self.tape.recording(chat) if self.tape else chat

    async def aclose(self) -> None:
        """Finish the tape and close all connections."""
        if self.tape is not None:
            self.tape.close()
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
        return OpenedChat(Player(Path(settings.replay)), is_replay=True)
    chosen = stages(settings.stage_models)
    named_stages(chosen, stage_names)
    if not settings.model:
        if chosen:
            raise UsageError("stage_models needs a model for the other stages: --model")
        return None
    names = dict.fromkeys((settings.model, *chosen.values()))
    servers = {name: open_chat(settings.with_(model=name)) for name in names}
    default = servers[settings.model]
    others = {stage: servers[name] for stage, name in chosen.items()}
    chat = StagedChat(default, others) if others else default
    tape = Tape(Path(settings.record), chat) if settings.record else None
    return OpenedChat(chat, tuple(servers.values()), tape)


__all__ = ["OpenedChat", "open_models"]
