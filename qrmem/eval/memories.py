"""The memories of a run: each is built once, and shared by all systems that need the same."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import AsyncFileLock

from qrmem.config import Settings
from qrmem.errors import CapReached
from qrmem.eval.items import Build, Built, Context
from qrmem.extraction.taggers import open_tagger
from qrmem.graphstore import GraphStore, NamespaceInfo, open_store
from qrmem.llm.budget import Budget
from qrmem.llm.totals import usage
from qrmem.memory.add import Adder
from qrmem.memory.runtime import Models, measure_dimension, new_namespace
from qrmem.prompts import load_prompts
from qrmem.retrieval.fragments import FragmentScorer
from qrmem.retrieval.searcher import Searcher
from qrmem.retrieval.trees.nodes import load_trees
from qrmem.types import Embedder, EntityTagger, Event, Listener, Passage, Segment
from qrmem.types.options import AddOptions
from qrmem.types.usage import Course

if TYPE_CHECKING:
    from qrmem.llm.routing import ChatModels
    from qrmem.memory.summary_trees import TreePreset

NAMESPACE = "eval"
IDLE = 8
"""Maximum number of unused memories that stay open."""


@dataclass(slots=True)
class OpenMemory:
    """An open memory.

    Attributes:
        fragments: FragRel's scorer.
    """

    key: str
    store: GraphStore
    tools: Models
    searcher: Searcher
    fragments: FragmentScorer
    ns: str = NAMESPACE
    users: int = 0
    titles: Mapping[str, str] = field(default_factory=dict)

    async def segments(self, ids: Iterable[str]) -> list[Segment]:
        """Return segments in the order of their ids."""
        return list(await self.store.segments(self.ns, list(ids)))

    def passages(self, segments: Iterable[Segment]) -> list[Passage]:
        """Label segments in order."""
        return [
            Passage(f"S{n}", segment, self.titles.get(segment.document_id, ""))
            for n, segment in enumerate(segments, 1)
        ]


@dataclass(slots=True, kw_only=True)
class Memories:
    """Builds memories in a folder and keeps some of them open.

    Attributes:
        settings: settings; `embedder` is the name of the given embedder.
        budget: budget of the run; it counts embedding.
        record: gets the cost of each memory that is built.
    """

    folder: Path
    settings: Settings
    chat: "ChatModels | None"
    embedder: Embedder | None
    budget: Budget
    record: Callable[[Built], None]
    listener: Listener
    rehearsed: Course | None = None
    _open: OrderedDict[str, OpenMemory] = field(default_factory=OrderedDict)
    _locks: dict[str, asyncio.Lock] = field(default_factory=dict)
    _tagger: EntityTagger | None = None

    @asynccontextmanager
    async def use(self, context: Context, build: Build) -> AsyncIterator[OpenMemory]:
        """Open the memory of a context; build it first if it is missing or incomplete."""
        key = memory_key(context, build, self.settings)
        async with self._locks.setdefault(key, asyncio.Lock()):
            memory = self._open.get(key) or await self._opened(key, context, build)
            self._open[key] = memory
            self._open.move_to_end(key)
            memory.users += 1
        try:
            yield memory
        finally:
            memory.users -= 1
            await self._close_idle(IDLE)

    async def close(self) -> None:
        """Close all memories and the tagger."""
        await self._close_idle(0)
        if self._tagger is not None:
            await self._tagger.close()

    def _tagger_of(self, settings: Settings) -> EntityTagger:
        """Return the one tagger of all memories: CoreNLP's server starts once in a run."""
        if settings.tagger == "rules":  # memories for trees use the rules, whatever the run uses
            return open_tagger(settings)
        if self._tagger is None:
            self._tagger = open_tagger(settings)
        return self._tagger

    async def _close_idle(self, keep: int) -> None:
        idle = [key for key, memory in self._open.items() if not memory.users]
        # All are removed before the first is closed: another item may end meanwhile.
        closing = [self._open.pop(key) for key in idle[: max(0, len(self._open) - keep)]]
        for memory in closing:
            await memory.store.close()

    async def _opened(self, key: str, context: Context, build: Build) -> OpenMemory:
        is_local = build.reader == "local"
        settings = self.settings.with_(
            namespace=NAMESPACE,
            mode="compact" if is_local else build.reader,
            paper_exact=False,  # `build` decides how it is built
            model="" if is_local else self.settings.model,
            text_fragments=f"words:{build.words}" if build.words else None,
            questions=self.settings.questions if build.graph_update else 0,
            segment_tokens=build.leaf or self.settings.segment_tokens,
            tagger="rules" if build.tree else self.settings.tagger,
        )
        async with _alone(self.folder / f"{key}.lock"):
            store = await open_store(str(self.folder / f"{key}.db"), settings)
            try:
                info = await store.namespace(NAMESPACE)
                if info is None:
                    info = await new_space(store, settings, self.embedder)
                chat = None if is_local else self.chat
                reading = Models(
                    store, info, settings, chat, self.embedder, self.budget, self._tagger_of
                )
                # A tree needs only segments: the chat model reads no graph for it.
                settings_of_run = settings.with_(model=self.settings.model)
                tools = Models(store, info, settings_of_run, self.chat, self.embedder, self.budget)
                tools = tools if build.tree else reading
                await self._build(key, context, build, store, reading, tools)
            except BaseException:
                await store.close()
                raise
        searcher = Searcher(store, NAMESPACE, self.embedder)
        titles = {document.id or "": document.title for document in context.documents}
        return OpenMemory(key, store, tools, searcher, FragmentScorer(searcher), titles=titles)

    async def _build(
        self,
        key: str,
        context: Context,
        build: Build,
        store: GraphStore,
        reading: Models,
        tools: Models,
    ) -> None:
        adder = Adder(
            store,
            NAMESPACE,
            reading,
            self.listener,
            AddOptions(question=build.question, open_entity=build.open_entity),
            is_chat=True,
        )
        began = time.monotonic()
        report = await adder.add(list(context.documents))
        nodes, malformed, has_grown = await self._grow(build, store, tools)
        if not report.added and not report.resumed and not has_grown:
            return
        calls = [c for c in await store.calls(NAMESPACE) if c.phase == "construction"]
        stages = usage(calls, with_cached=True).construction
        seconds = time.monotonic() - began
        self.record(
            Built(
                memory=key,
                context=context.id,
                build=build,
                documents=len(context.documents),
                states=dict(report.states),
                problems=tuple(report.problems),
                stages=stages,
                seconds=round(seconds, 3),
                nodes=nodes,
                malformed=malformed,
            )
        )
        self.listener(Event("memory", {"context": context.id, "seconds": seconds}))

    async def _grow(self, build: Build, store: GraphStore, tools: Models) -> tuple[int, int, bool]:
        """Build a memory's trees; return its nodes, its malformed nodes, and whether any is new.

        Raises:
            CapReached: finished nodes are kept.
        """
        if not build.tree:
            return 0, 0, False
        from qrmem.memory.summary_trees import run_build

        ids = await store.document_ids(NAMESPACE)
        run = tools.run("construction", self.listener)
        preset: TreePreset = "paper" if build.is_paper_tree else "default"
        report = await run_build(
            store,
            NAMESPACE,
            tools,
            run,
            ids,
            self.listener,
            build.tree,
            preset,
            summary_tokens=build.summary,
            course=self.rehearsed,
        )
        if report.stopped:
            raise CapReached(report.stopped)
        trees = await load_trees(store, NAMESPACE, build.tree)
        nodes = [node for tree in trees for node in tree.tree.nodes]
        return len(nodes), sum(not node.is_well_formed for node in nodes), report.made > 0


async def new_space(
    store: GraphStore, settings: Settings, embedder: Embedder | None
) -> NamespaceInfo:
    """Create the namespace of the settings, for an embedder's vectors."""
    info = replace(new_namespace(settings), dimension=await measure_dimension(embedder))
    return await store.create_namespace(info.name, info)


@asynccontextmanager
async def _alone(path: Path) -> AsyncIterator[None]:
    """Lock out other processes: one worker builds a memory, the others wait for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    async with AsyncFileLock(path):
        yield


def memory_key(context: Context, build: Build, settings: Settings) -> str:
    """Return the key of a memory: equal texts that are read in the same way have the same key."""
    is_asked = build.reader != "local" or build.tree
    shape = (
        build,
        settings.embedder,
        settings.tokenizer,
        settings.segment_tokens,
        settings.questions,
        load_prompts(settings.prompts).checksum if is_asked else "",
        settings.tagger,
        settings.model if is_asked else "",
    )
    digest = hashlib.sha256(repr(shape).encode())
    for document in context.documents:
        digest.update(f"{document.id}\0{document.title}\0{document.text}\0".encode())
    return digest.hexdigest()[:16]
