"""A conversation that is being held: its rounds become fragments, one by one (F19)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from qrmem.eval.bench import Bench
from qrmem.eval.records import Round
from qrmem.graph import dialog
from qrmem.graphstore import GraphStore, open_store
from qrmem.ingest import Adder
from qrmem.retrieval.fragments import FragmentScorer, FragmentSettings
from qrmem.retrieval.searcher import Searcher
from qrmem.session import Models
from qrmem.types import Listener, Turn

NAMESPACE = "session"


class Session:
    """The rounds of one conversation so far, in a memory of their own that is not kept."""

    def __init__(self, store: GraphStore, tools: Models, listener: Listener) -> None:
        self.rounds: list[Round] = []
        self._turns: list[Turn] = []
        self._store = store
        self._adder = Adder(store, NAMESPACE, tools, listener=listener)
        self._scorer = FragmentScorer(Searcher(store, NAMESPACE, tools.embedder))
        self._count = tools.counter.count

    async def add(self, made: Round) -> None:
        """Take what was said and replied: one fragment, as in the paper."""
        self.rounds.append(made)
        turn = Turn(made.id, len(self.rounds), "user", made.text, session=NAMESPACE)
        self._turns.append(turn)
        await self._adder.add([dialog.as_document(turn)])

    def latest(self) -> list[Round]:
        """Return the last rounds, which go to the model as they are: 1,000 tokens, 10 rounds."""
        kept = dialog.recent(self._turns, dialog.RECENT_TOKENS, self._count)
        return self.rounds[len(self.rounds) - kept :]

    async def ranked(self, said: str, settings: FragmentSettings) -> list[Round]:
        """Return all rounds, best first, for the last round and what the user says now."""
        if not self.rounds:
            return []
        found = await self._scorer.assess(f"{self._turns[-1].text}\n{said}", settings=settings)
        best = list(found.best(found.fragments.size)) if found else []
        of = {s.id: s.document_id for s in await self._store.segments(NAMESPACE, best)}
        by_id = {made.id: made for made in self.rounds}
        return [by_id[id] for id in dict.fromkeys(of[segment] for segment in best)]


@asynccontextmanager
async def open_session(bench: Bench) -> AsyncIterator[Session]:
    """Open a conversation that nobody has said anything in."""
    embedder = bench.tools.embedder
    settings = bench.settings.with_(namespace=NAMESPACE, model="")
    store = await open_store("memory://", settings)
    try:
        info = replace(
            bench.tools.info,
            name=NAMESPACE,
            embedder=settings.embedder,
            dimension=embedder.dimension if embedder else 0,
        )
        info = await store.create_namespace(NAMESPACE, info)
        yield Session(store, Models(store, info, settings, None, embedder), bench.listener)
    finally:
        await store.close()
