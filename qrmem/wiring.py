"""From settings to live parts: tokenizers, embedder, chat model, reasoner, a meter per run."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from qrmem.config import Settings
from qrmem.errors import EmbedderMismatch
from qrmem.graphstore.aside import Aside
from qrmem.graphstore.protocol import GraphStore, NamespaceInfo
from qrmem.models.embedders import default_embedder, open_embedder
from qrmem.models.tokenizers import open_tokenizer
from qrmem.ports import CallRecord, Embedder, EntityTagger, Listener, Reasoner, Tokenizer
from qrmem.records import Usage

if TYPE_CHECKING:
    from qrmem.models.chat import Chat
    from qrmem.models.meter import Meter, Phase

VECTOR_BATCH = 64


def check_embedder(settings: Settings, info: NamespaceInfo | None) -> None:
    """Refuse another embedder than the one that the namespace was embedded by.

    Raises:
        EmbedderMismatch: with what to do.
    """
    chosen = settings.embedder
    if info is not None and chosen and chosen != info.embedder:
        raise EmbedderMismatch(
            f"namespace {info.name!r} was embedded by {info.embedder!r}, not {chosen!r}; leave "
            f"--embedder out, or change it for good: qrmem reembed --embedder {chosen}"
        )


def new_namespace(settings: Settings) -> NamespaceInfo:
    """Return what a new namespace is made with."""
    name = settings.embedder or default_embedder()
    embedder = open_embedder(name, settings)
    return NamespaceInfo(
        name=settings.namespace,
        tokenizer=open_tokenizer(settings.tokenizer).name,
        segment_tokens=settings.segment_tokens,
        embedder=name,
        dimension=embedder.dimension if embedder else 0,
    )


def recorded_embedder(info: NamespaceInfo, settings: Settings) -> Embedder | None:
    """Return the embedder that the namespace was made with."""
    return open_embedder(info.embedder, settings)


@dataclass(frozen=True, slots=True)
class Run:
    """One `add` or `ask`: its reasoner, and what it uses.

    Attributes:
        calls: those that are not yet in the store.
    """

    reasoner: Reasoner
    meter: "Meter | None"
    calls: list[CallRecord]

    def take(self, segment_id: str) -> list[CallRecord]:
        """Return the calls about a segment that were not taken yet, to be committed with it."""
        taken = [call for call in self.calls if call.segment_id == segment_id]
        self.calls[:] = [call for call in self.calls if call.segment_id != segment_id]
        return taken

    @property
    def usage(self) -> Usage:
        """What the run has used so far."""
        return self.meter.usage() if self.meter else Usage()


class Tools:
    """The parts that stay the same while a memory is open."""

    def __init__(
        self,
        store: GraphStore,
        info: NamespaceInfo,
        settings: Settings,
        chat: "Chat | None",
        embedder: Embedder | None,
    ) -> None:
        self.settings = settings
        self.info = info
        self.embedder = embedder
        self.cutter: Tokenizer = open_tokenizer(info.tokenizer)
        self.counter: Tokenizer = open_tokenizer(settings.tokenizer)
        self._store = store
        self._chat = chat
        self._tagger: EntityTagger | None = None

    @classmethod
    async def open(cls, store: GraphStore, info: NamespaceInfo, settings: Settings) -> Self:
        """Open what the settings name; a model is not called yet."""
        chat = None
        if settings.model:
            from qrmem.models.chat import open_chat

            chat = open_chat(settings)
        return cls(store, info, settings, chat, recorded_embedder(info, settings))

    async def close(self) -> None:
        """Close the model's connections, and end the tagger."""
        if self._chat is not None:
            await self._chat.aclose()
        if self._tagger is not None:
            await self._tagger.close()

    def tagger(self, reasoner: Reasoner) -> EntityTagger | None:
        """Return the entity tagger that the settings name, or `None` where it adds nothing.

        Raises:
            UsageError: there is none of that name.
        """
        if self.settings.tagger == "rules" and reasoner.is_local:
            return None
        if self._tagger is None:
            from qrmem.language.taggers import open_tagger

            self._tagger = open_tagger(self.settings)
        return self._tagger

    def run(self, phase: "Phase", listener: Listener, aside: Aside | None = None) -> Run:
        """Return what one run works with.

        Args:
            aside: takes the replies to keep, where losing one is no reason to stop.
        """
        if self._chat is None:
            from qrmem.language.local import LocalReasoner

            local = LocalReasoner(
                self.counter,
                questions_per_600=self.settings.questions,
                reserve=self.settings.reserve,
            )
            return Run(local, None, [])
        from qrmem.language.prompted import PromptedReasoner
        from qrmem.models.caching import CachedChat
        from qrmem.models.meter import Meter

        async def keep(key: str, value: Mapping[str, Any], segments: Sequence[str]) -> None:
            if aside is None:
                await self._keep(key, value, segments)
            else:
                await aside.write(lambda: self._keep(key, value, segments))

        calls: list[CallRecord] = []
        meter = Meter(
            CachedChat(self._chat, self._kept, keep),
            run=uuid.uuid4().hex[:12],
            phase=phase,
            tokenizer=self.counter,
            sink=calls.append,
            listener=listener,
        )
        reasoner = PromptedReasoner(
            meter, self.counter, mode=self.settings.mode, settings=self.settings
        )
        return Run(reasoner, meter, calls)

    async def _kept(self, key: str) -> Mapping[str, Any] | None:
        return await self._store.cached(self.info.name, key)

    async def _keep(self, key: str, value: Mapping[str, Any], segments: Sequence[str]) -> None:
        await self._store.put_cached(self.info.name, key, value, segments=segments)


async def reembed(
    store: GraphStore, ns: str, settings: Settings, name: str, listener: Listener
) -> int:
    """Change a namespace's embedder, embed what lacks vectors; returns how many segments."""
    from qrmem.agents.embedding import embed_segments

    embedder = open_embedder(name, settings)
    info = await store.namespace(ns)
    if info is not None and info.embedder != name:
        await store.set_embedder(ns, name, embedder.dimension if embedder else 0)
    if embedder is None:
        return 0
    ids: Sequence[str] = [
        segment.id
        for document in await store.documents(ns)
        for segment in await store.segments_of(ns, document.id)
    ]
    return await embed_segments(store, ns, embedder, ids, listener=listener)
