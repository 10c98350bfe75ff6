"""What makes a run dry: models that only count, and a store that forgets what is written to it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, cast

from qrmem.config import Settings
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.llm.budget import Budget
from qrmem.llm.embedders import BATCH, RemoteEmbedder
from qrmem.llm.embedders import STAGE as EMBED
from qrmem.llm.forecast import Dry, StageUse, StubChat
from qrmem.llm.routing import ChatModels, chosen_stages
from qrmem.llm.totals import Phase
from qrmem.memory.runtime import Models, Run
from qrmem.prompts import stage_names
from qrmem.types import Embedder, Event, Listener, Tokenizer
from qrmem.types.usage import Course

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOLDS = 0.25
"""Folds of a real run for each of a dry one, whose relations repeat the commonest names."""
DIMENSION = 8
"""Of a stand-in's vectors, where the real dimension is not known."""


class DryModels(Models):
    """Models whose runs are dry: real prompts, stubs for all that costs."""

    def __init__(
        self,
        store: GraphStore,
        info: NamespaceInfo,
        settings: Settings,
        embedder: Embedder | None = None,
        course: Course | None = None,
    ) -> None:
        """Take the parts; `embedder` is one that works here, or none; `course`: see `StubChat`."""
        self._longest: dict[str, int] = {}
        self._calls: list[Mapping[str, Any]] = []
        # Nothing is started, kept or capped.
        settings = replace(
            settings,
            tagger="rules",
            executor="inline",
            cache=False,
            record="",
            replay="",
            max_calls=None,
            max_tokens=None,
            max_cost=None,
            max_seconds=None,
        )

        def stub(model: str) -> StubChat:
            return StubChat(model, self._longest, course)

        stages = chosen_stages(settings, stage_names())
        others = {stage: stub(model) for stage, model in stages.items()}
        chat = ChatModels(stub(settings.model), others) if settings.model else None
        super().__init__(store, info, settings, chat, embedder)

    def run(self, phase: Phase, listener: Listener, *args: Any, **options: Any) -> Run:
        """Return what one dry run works with; its calls are counted here as it tells of them."""

        def heard(event: Event) -> None:
            if event.kind == "call":
                self._calls.append(event.data)
            listener(event)

        run = super().run(phase, heard, *args, **options)
        if phase == "construction" and self.info.embedder.startswith("openai:"):
            return replace(run, embedder=StubEmbedder(self.info.embedder, run.budget, self.counter))
        return run

    def model_of(self, stage: str) -> str:
        """Return the name of the model that a stage is sent to."""
        return "" if self._chat is None else self._chat.name_of(stage)

    def used(self, weight: Callable[[str], float], stages: Dry | None = None) -> Dry:
        """Return what all dry runs used by stage and model.

        Args:
            weight: how many real calls one of a stage stands for.
            stages: what it is added to.
        """
        stages = {} if stages is None else stages
        for call in self._calls:
            stage = call["stage"]
            stage_use = stages.setdefault((stage, call["model"]), StageUse())
            share = FOLDS if stage == "fold" else 1.0
            most = self._longest.get(stage, 0)
            stage_use.add(call["tokens_in"], call["tokens_out"], share * weight(stage), most)
        return stages


class StubEmbedder:
    """Counts what a server's embedder would be sent; its vectors say nothing.

    Without a budget nothing is counted: an embedder on this machine costs time alone.
    """

    def __init__(
        self, name: str, budget: Budget | None, counter: Tokenizer, dimension: int = DIMENSION
    ) -> None:
        self.name = name
        self.dimension = dimension
        self._budget = budget
        self._counter = counter

    def windows(self, text: str) -> Sequence[str]:
        """Cut a text as the embedder would."""
        return RemoteEmbedder.windows(text)

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> "NDArray[np.float32]":
        """Count the requests; return rows that are all the same."""
        import numpy as np

        if self._budget is not None:
            model = self.name.partition(":")[2]
            for start in range(0, len(texts), BATCH):
                tokens = sum(self._counter.count(text) for text in texts[start : start + BATCH])
                self._budget.count(
                    stage=EMBED, prompt="", model=model, tokens_in=tokens, cost=None, seconds=0.0
                )
        return np.full((len(texts), self.dimension), self.dimension**-0.5, dtype=np.float32)


# --- stores --------------------------------------------------------------------------------------


class DryStore:
    """A store that can be read; what is written to it is forgotten.

    By the protocol a method that returns nothing changes the store. The two changes that return
    something are refused, as is whatever the protocol does not name.
    """

    def __init__(self, store: GraphStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        method = getattr(GraphStore, name, None)
        is_known = method is not None or name in GraphStore.__annotations__
        if not is_known or name in ("apply", "create_namespace"):
            raise AttributeError(f"a plan may not use {name!r} of a store")
        if method is not None and signature(method).return_annotation is None:
            return _forget
        return getattr(self._store, name)


async def _forget(*args: Any, **options: Any) -> None:
    """Do nothing."""


def dry_store(store: GraphStore) -> GraphStore:
    """Return a store that can be read, and forgets what is written to it."""
    return cast("GraphStore", DryStore(store))
