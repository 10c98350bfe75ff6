"""Where a rehearsal takes place: stand-ins for all that costs, stores that keep nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from qrmem.answering.local import LocalReasoner
from qrmem.answering.prompted import PromptedReasoner
from qrmem.config import Settings
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.llm.budget import Budget, Phase
from qrmem.llm.counted_embedder import STAGE
from qrmem.llm.remote_embedder import BATCH, RemoteEmbedder
from qrmem.llm.routing import RoutedChat, chosen_stages
from qrmem.planning.rehearsal import Course, Rehearsing, StandIn
from qrmem.session import Models, Run, stage_names
from qrmem.types import CallRecord, ChatModel, Embedder, Event, Reasoner, Tokenizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DIMENSION = 8


def stand_ins(settings: Settings) -> tuple[ChatModel | None, dict[str, int]]:
    """Return stand-ins for the models of the settings, and the longest reply of each stage.

    With no model there is none: what the local reasoner does costs nothing.

    Raises:
        UsageError: a model is named for a stage that there is not.
    """
    longest: dict[str, int] = {}
    chosen = chosen_stages(settings, stage_names())
    if not settings.model:
        return None, longest
    others = {stage: StandIn(model, longest) for stage, model in chosen.items()}
    default = StandIn(settings.model, longest)
    return (RoutedChat(default, others) if others else default), longest


def on_stage(settings: Settings) -> Settings:
    """Return settings with which nothing is started, kept or capped."""
    return replace(
        settings,
        tagger="rules",
        cache=False,
        record="",
        replay="",
        max_calls=None,
        max_tokens=None,
        max_cost=None,
        max_seconds=None,
    )


class RehearsalTools(Models):
    """Models whose runs rehearse: real prompts, local replies, vectors of nothing."""

    keeps_records = True

    def __init__(
        self,
        store: GraphStore,
        info: NamespaceInfo,
        settings: Settings,
        chat: ChatModel | None,
        embedder: Embedder | None = None,
        course: Course = "likely",
    ) -> None:
        """Take the parts.

        Args:
            embedder: one that works here, or none.
            course: how a question goes.
        """
        super().__init__(store, info, settings, chat, embedder)
        self._course: Course = course
        self._budgets: list[Budget] = []

    @property
    def records(self) -> list[CallRecord]:
        """The calls of all rehearsals."""
        return [record for budget in self._budgets for record in budget.records]

    def run(self, phase: Phase, *args: Any, **options: Any) -> Run:
        """Return what one rehearsal works with."""
        run = super().run(phase, *args, **options)
        self._budgets.append(run.budget)
        local = LocalReasoner(self.counter, questions_per_600=self.settings.questions)
        embedder = run.embedder
        if phase == "construction" and self.info.embedder.startswith("openai:"):
            embedder = StandInEmbedder(self.info.embedder, run.budget, self.counter)
        reasoner: Reasoner = run.reasoner
        if isinstance(run.reasoner, PromptedReasoner):
            reasoner = Rehearsing(run.reasoner, local, self._course)
        return replace(run, reasoner=reasoner, embedder=embedder)


class StandInEmbedder:
    """Counts what a server's embedder would be sent; its vectors say nothing."""

    def __init__(self, name: str, budget: Budget, counter: Tokenizer) -> None:
        self._name = name
        self._budget = budget
        self._counter = counter

    @property
    def name(self) -> str:
        """That of the embedder which is rehearsed."""
        return self._name

    @property
    def dimension(self) -> int:
        """Length of its vectors."""
        return DIMENSION

    def windows(self, text: str) -> Sequence[str]:
        """Cut a text as the embedder would."""
        return RemoteEmbedder.pieces(text)

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> "NDArray[np.float32]":
        """Count the requests; return rows that are all the same."""
        import numpy as np

        for start in range(0, len(texts), BATCH):
            tokens = sum(self._counter.count(text) for text in texts[start : start + BATCH])
            self._budget.count(
                stage=STAGE,
                prompt="",
                model=self._name.partition(":")[2],
                tokens_in=tokens,
                cost=None,
                seconds=0.0,
            )
        return np.full((len(texts), DIMENSION), DIMENSION**-0.5, dtype=np.float32)


_WRITES = ("put_", "set_", "create_", "delete_", "record", "apply", "decide", "finish_")


class Forgetful:
    """A store that can be read; what is written to it is forgotten."""

    def __init__(self, store: GraphStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return _forget if name.startswith(_WRITES) else getattr(self._store, name)


async def _forget(*args: Any, **options: Any) -> None:
    """Do nothing."""


def forgetful(store: GraphStore) -> GraphStore:
    """Return a store that can be read, and forgets what is written to it."""
    return cast("GraphStore", Forgetful(store))


def silent(event: Event) -> None:
    """Take an event and do nothing."""


def info_on_stage(info: NamespaceInfo) -> NamespaceInfo:
    """Return a namespace with vectors of the stand-in, where a server would make them."""
    is_remote = info.embedder.startswith("openai:")
    return replace(info, dimension=DIMENSION) if is_remote else info


__all__ = ["RehearsalTools", "forgetful", "info_on_stage", "on_stage", "silent", "stand_ins"]
