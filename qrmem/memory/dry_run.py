"""Dry runs: models that only count their calls, and a store that ignores writes."""

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
from qrmem.llm.run import Run
from qrmem.llm.totals import Phase
from qrmem.memory.runtime import Models
from qrmem.prompts import stage_names
from qrmem.types import Embedder, Event, Listener, Tokenizer
from qrmem.types.usage import Course

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FOLDS = 0.25
"""Folds of a real run for each fold of a dry run, whose relations repeat few names."""
DIMENSION = 8
"""Dimension of a stub's vectors if the real one is not known."""


class DryModels(Models):
    """Models for dry runs: real prompts, and stubs for every paid call."""

    def __init__(
        self,
        store: GraphStore,
        info: NamespaceInfo,
        settings: Settings,
        embedder: Embedder | None = None,
        course: Course | None = None,
    ) -> None:
        """Take the parts; `embedder` runs on this machine, or is none; `course`: see `StubChat`."""
        self._longest: dict[str, int] = {}
        self._calls: list[Mapping[str, Any]] = []
        # A dry run starts no server, stores nothing and has no caps.
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
        """Return the parts of one dry run; its calls are counted here as they are reported."""

        def heard(event: Event) -> None:
            if event.kind == "call":
                self._calls.append(event.data)
            listener(event)

        run = super().run(phase, heard, *args, **options)
        if phase == "construction" and self.info.embedder.startswith("openai:"):
            return replace(run, embedder=StubEmbedder(self.info.embedder, run.budget, self.counter))
        return run

    def model_of(self, stage: str) -> str:
        """Return the name of the model that a stage uses."""
        return "" if self._chat is None else self._chat.name_of(stage)

    def used(self, weight: Callable[[str], float], stages: Dry | None = None) -> Dry:
        """Return the usage of all dry runs by stage and model.

        Args:
            weight: number of real calls for one counted call, by stage.
            stages: the usage to add it to.
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
    """Counts what an embedding server would receive; its vectors have no meaning.

    Without a budget nothing is counted: an embedder on this machine costs only time.
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
        """Count the requests; returns equal rows."""
        import numpy as np

        if self._budget is not None:
            model = self.name.partition(":")[2]
            for start in range(0, len(texts), BATCH):
                tokens = sum(self._counter.count(text) for text in texts[start : start + BATCH])
                self._budget.count(
                    stage=EMBED, prompt="", model=model, tokens_in=tokens, cost=None, seconds=0.0
                )
        return np.full((len(texts), self.dimension), self.dimension**-0.5, dtype=np.float32)


# --- stores ---------------------------------------------------------------------------------------


class DryStore:
    """A store that reads another one and ignores writes.

    In the protocol, methods that return nothing are writes. The two writes that return something
    raise an error, and so does every method that the protocol does not have.
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
    """Return a store that reads the given one and ignores writes."""
    return cast("GraphStore", DryStore(store))
