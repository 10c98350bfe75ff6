"""One `add`: stores documents, cuts segments, reads and merges them in batches, and reports."""

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from importlib import import_module

from qrmem.errors import (
    AccessRefused,
    BadDocument,
    CapReached,
    ModelUnavailable,
    ModelUnusable,
    StoreConflict,
    UsageError,
)
from qrmem.graph.merging import refresh_names
from qrmem.graph.segmenting import cut, cut_code, cut_words, read_code
from qrmem.graphstore.protocol import GraphStore
from qrmem.io.sources import PassedOver, Refused, Source, documents
from qrmem.llm.parallel import in_batches
from qrmem.llm.run import Run
from qrmem.memory.add_state import (
    FileIds,
    IngestState,
    Tally,
    is_described_anew,
    is_one_document,
    unread_dates,
    worker_losses,
)
from qrmem.memory.inspect import low_yields
from qrmem.memory.runtime import Models, caps_of
from qrmem.memory.statements import edits_to_keep
from qrmem.retrieval.turn_ranking import PART_TOKENS
from qrmem.text.code import Outline, has_grammar, outline
from qrmem.text.code.languages import CODE_KEY
from qrmem.text.dates import unread_date
from qrmem.types import (
    AddReport,
    Document,
    Event,
    Executor,
    LedgerRow,
    Listener,
    Reading,
    Segment,
)
from qrmem.types.options import AddOptions
from qrmem.types.turns import is_read_by_rules, speaker_of, turn_number
from qrmem.workers import Crew

BATCH_CHARACTERS = 16_000_000
"""Characters of the documents that are read and merged as one batch."""
AHEAD = 64
"""Number of a source's documents that are looked up in the store at once."""
LEAST_CHARACTERS = 1000
"""Minimum characters that a document counts for in a batch: its names take room, too."""
HELD_SEGMENTS = 256
"""Segments of the new and changed documents that are written in one transaction."""
LONG = 10_000
"""Characters from which a document is cut off the event loop."""
BREATH = 16
"""Number of documents, or batch size of segments, after which other tasks get a turn."""


class Adder:
    """Reads the documents of one source into one namespace."""

    def __init__(
        self,
        store: GraphStore,
        ns: str,
        models: Models,
        listener: Listener,
        options: AddOptions | None = None,
        *,
        new: Collection[str] = (),
        is_chat: bool = False,
    ) -> None:
        """Make an adder; see `Memory.add`. Its `replaced` are ids of replaced segments.

        Args:
            new: ids of turns that must not be there: where another process took one, nothing is
                added from there on, and the caller chooses others. Once one is added, an embedder
                that fails ends the run as a cap does.
            is_chat: whether turns, and facts of them, may be among the documents.
        """
        self._options = options or AddOptions()
        self._new = new
        self._is_chat = is_chat
        self._store = store
        self._ns = ns
        self._models = models
        self._listener = listener
        caps = caps_of(models.settings, **self._options.caps)
        self._run: Run = models.run("construction", listener, caps=caps)
        self._tally = Tally()
        self.replaced: set[str] = set()
        self._outlined: tuple[str, Outline] | None = None
        self._is_alone = False
        self._crew: Crew | None = None
        is_embedded = models.embedder is not None
        self._file_ids = FileIds(store, ns)
        self._state = IngestState(store, ns, is_embedded=is_embedded, is_folded=self._run.is_folded)

    async def add(self, source: Source) -> AddReport:
        """Read a source; see `Memory.add`."""
        began = time.monotonic()
        self._models.tagger(self._run.reasoner)  # a missing source fails before anything is stored
        self._is_alone = await asyncio.to_thread(is_one_document, source)
        self._crew = None if self._is_chat else await self._models.crew()
        workers_lost = self._crew.lost if self._crew else 0
        try:
            await self._take_all(source)
            await self._build()
            if not self._tally.read:
                await self._settle_names()
        except (CapReached, ModelUnavailable, ModelUnusable, AccessRefused) as exc:
            # A stored turn is no failure: after an error the caller would store it again.
            if not (self._tally.added if self._new else isinstance(exc, CapReached)):
                raise
            await self._stop(str(exc))
        finally:
            # If the embedder failed before the namespace was made, no calls can be recorded.
            if self._run.calls and await self._store.namespace(self._ns) is not None:
                await self._store.record(self._ns, (), self._run.calls)
        if self._models.settings.schema and self._run.reasoner.is_local and self._tally.read:
            self._warn("schema", "no chat model is set, which the schema's own types need")
        if self._tally.undated:
            self._warn("date", unread_dates(self._tally.undated))
        if self._crew and (count := self._crew.lost - workers_lost):
            self._warn("worker", worker_losses(count))
        await self._look_at_yields()
        if not self._tally.stopped:
            is_update = self._options.update
            self._tally.gone = await self._file_ids.gone(source, is_update=is_update)
        seconds = time.monotonic() - began
        return self._tally.report(self._run.usage, self._run.reasoner.name, seconds)

    async def _settle_names(self) -> None:
        """Resolve names that an earlier, killed update left unresolved.

        A run that merges something does so anyway; this is for a run that finds nothing new.
        """
        from qrmem.agents.embedding import alike_by  # LangGraph takes a second to import

        similar = self._models.settings.similar_names
        alike = alike_by(self._store, self._ns, self._run.embedder, similar)
        await refresh_names(self._store, self._ns, similar=alike)

    async def _take_all(self, source: Source) -> None:
        options = self._options
        ahead: list[Document | Refused | PassedOver] = []
        try:
            crew = None if self._is_alone else self._crew
            async for item in documents(
                source, options.glob, follow_links=options.follow_links, crew=crew
            ):
                ahead.append(item)
                if len(ahead) == AHEAD:
                    batch, ahead = ahead, []
                    await self._take_some(batch)
            batch, ahead = ahead, []
            await self._take_some(batch)
        except Exception:
            await self._take_some(ahead)  # documents that a source gave before its error are kept
            await self._flush()
            raise

    async def _take_some(self, ahead: Sequence[Document | Refused | PassedOver]) -> None:
        """Store what is new or changed; a refused document among several is a problem."""
        items = await self._file_ids.named(ahead)
        ids = [item.id or "" for item in items if isinstance(item, Document)]
        await self._state.look(ids)
        for item in items:
            if self._tally.is_taken:
                break
            if isinstance(item, PassedOver):
                self._tally.passed_over.update(item.reasons)
                continue
            if isinstance(item, Refused):
                self._tally.problems.append((item.name, -1, str(item.error)))
                continue
            self._tally.batched += max(LEAST_CHARACTERS, len(item.text))
            try:
                await self._write(item)
            except UsageError as exc:
                if self._is_alone:
                    raise
                self._tally.problems.append((item.id or "", -1, str(exc)))
            except StoreConflict:
                self._tally.is_taken = True
            if self._tally.batched >= BATCH_CHARACTERS:
                await self._build()

    async def _look_at_yields(self) -> None:
        """Warn of documents that yielded far fewer facts than usual in this run."""
        tally = self._tally
        waiting = tally.batch if tally.stopped else []  # they may not be merged yet
        finished = [
            name for name in (*tally.added, *tally.updated, *tally.resumed) if name not in waiting
        ]
        if documents := await self._store.documents(self._ns, finished) if finished else ():
            for message in low_yields(documents):
                self._warn("yield", message)

    def _warn(self, what: str, message: str) -> None:
        self._tally.warnings.append(message)
        self._listener(Event("warning", {"what": what, "message": message}))

    async def _write(self, document: Document) -> None:
        name = document.id or ""
        is_turn = turn_number(name, document.metadata) > 0
        if is_turn:
            self._state.check_turn(name, may_begin=self._is_chat)
        digest = document.digest
        before = self._tally.seen.get(name) or self._state.digest(name)
        if name in self._tally.seen and before == digest:
            return
        if name in self._new and before is not None:
            raise StoreConflict(f"document {name!r} already exists")
        stored_info = self._state.info(name) if self._state.digest(name) == digest else None
        if before not in (None, digest) and not (
            self._options.update and name not in self._tally.seen
        ):
            raise UsageError(self._state.taken(document, is_alone=self._is_alone))
        self._tally.seen[name] = digest
        is_local = self._run.reasoner.is_local
        by_rules = is_turn or (not is_local and is_read_by_rules(name, document.metadata))
        if before != digest and not (CODE_KEY in document.metadata or by_rules):
            if before is not None:
                self._tally.changed.add(name)
            await self._hold(name, document)
            return
        await self._flush()
        if stored_info is not None and not self._options.rebuild:
            if self._options.update and is_described_anew(document, stored_info):
                await self._put(document, self._tally.updated)
            elif self._state.is_done(name):
                self._tally.unchanged.append(name)
                self._tally.readers |= self._state.readers(name)
                self._pass(name, stored_info.segments)
                return
            else:
                self._tally.resumed.append(name)
                self._trust(await self._states(name))
        elif before == digest:
            await self._put(document, self._tally.updated, rebuild=True)
        elif before is None:
            await self._put(document, self._tally.added, only_new=name in self._new)
        else:  # source code, or a document that no model reads, with another text
            await self._put(document, self._tally.updated, rebuild=self._options.rebuild)
        if CODE_KEY in document.metadata:
            await self._read_code(document)
        elif by_rules:
            await self._read_by_rules(document)
        self._enlist(name, await self._states(name))

    async def _hold(self, name: str, document: Document) -> None:
        """Collect a new or changed document: one transaction for several is cheaper."""
        segments = await self._checked_cut(name, document)
        self._tally.held.append((document, segments))
        self._tally.held_segments += len(segments)
        if len(self._tally.held) % BREATH == 0:
            await asyncio.sleep(0)
        if self._tally.held_segments >= HELD_SEGMENTS:
            await self._flush()

    async def _flush(self) -> None:
        """Store the collected documents; if one of them is refused, store each separately."""
        held, self._tally.held, self._tally.held_segments = self._tally.held, [], 0
        if held:
            await self._make_namespace()
        groups = [held] if held else []
        for written in groups:
            changed = {document.id or "" for document, _ in written} & self._tally.changed
            await self._replace(changed, [one for _, segments in written for one in segments])
            try:
                await self._write_documents(written, rebuild=self._options.rebuild)
            except UsageError as exc:
                if self._is_alone:
                    raise
                if len(written) > 1:
                    groups += [[one] for one in written]
                else:
                    self._tally.problems.append((written[0][0].id or "", -1, str(exc)))
                continue
            await self._enlist_all(written, changed)

    async def _enlist_all(
        self, written: Sequence[tuple[Document, list[Segment]]], changed: Collection[str]
    ) -> None:
        for document, segments in written:
            name, states = document.id or "", Counter(pending=len(segments))
            if value := unread_date(document.metadata):
                self._tally.undated.append((name, value))
            if name in changed:
                states = await self._states(name)
                self._tally.reused += states["ok"]
            (self._tally.updated if name in changed else self._tally.added).append(name)
            self._enlist(name, states)

    async def _write_documents(
        self,
        written: Sequence[tuple[Document, list[Segment]]],
        *,
        rebuild: bool,
        only_new: bool = False,
    ) -> None:
        """Store documents; the user's edits of what they still say survive."""
        segments = [one for _, segments in written for one in segments]
        edits = await edits_to_keep(self._store, self._ns, segments)
        await self._store.put_documents(
            self._ns, written, rebuild=rebuild, only_new=only_new, edits=edits
        )

    async def _replace(self, names: Collection[str], segments: Iterable[Segment]) -> None:
        """Record the segments that some documents lose; delete summaries made from them."""
        if not names:
            return
        before = await self._store.segments(self._ns, documents=sorted(names))
        document_of = {s.id: s.document_id for s in before}
        for segment in segments:
            document_of.pop(segment.id, None)
        self.replaced |= document_of.keys()
        # A new title alone is not worth a call of the chat model.
        changed_documents = names if self._run.reasoner.is_local else set(document_of.values())
        await self._store.record(self._ns, (), summaries=dict.fromkeys(changed_documents, ""))

    async def _put(
        self, document: Document, done: list[str], *, rebuild: bool = False, only_new: bool = False
    ) -> None:
        name = document.id or ""
        segments = await self._checked_cut(name, document)
        await self._make_namespace()
        await self._replace([name] if self._state.info(name) else [], segments)
        await self._write_documents([(document, segments)], rebuild=rebuild, only_new=only_new)
        done.append(name)
        self._tally.reused += (await self._states(name))["ok"]

    def _trust(self, states: Counter[str]) -> None:
        """Retry a model longer if it has read a part of a document before."""
        if self._run.meter and (states["extracted"] or states["ok"] or states["partial"]):
            self._run.meter.breaker.prove()

    async def _checked_cut(self, name: str, document: Document) -> list[Segment]:
        if len(document.text) > LONG:
            segments = await asyncio.to_thread(self.cut, name, document)
        else:
            segments = self.cut(name, document)
        if segments:
            return segments
        raise BadDocument(f"document {name!r} contains nothing to read")

    def cut(self, name: str, document: Document) -> list[Segment]:
        """Cut a document by the rules of this namespace; see `qrmem.graph.segmenting.cut`."""
        settings, cutter = self._models.settings, self._models.cutter
        limit = self._models.info.segment_tokens
        if CODE_KEY in document.metadata:
            how, tree = settings.code_fragments, self._outline(document)
            return cut_code(name, document, tree, how, cutter, limit)
        kind, _, words = settings.text_fragments.partition(":")
        if kind == "words":
            return cut_words(name, document, cutter, int(words))
        if turn_number(name, document.metadata):
            limit = min(limit, PART_TOKENS)
        return cut(name, document, cutter, limit)

    def _outline(self, document: Document) -> Outline:
        """Return a source file's outline; cached, because it is needed twice in a row."""
        if self._outlined is None or self._outlined[0] != document.text:
            language = str(document.metadata[CODE_KEY])
            declarations = outline(document.text, language)
            if declarations.is_broken or not has_grammar(language):
                self._tally.unparsed.append(document.id or "")
            self._outlined = document.text, declarations
        return self._outlined[1]

    async def _read_code(self, document: Document) -> None:
        """Commit the facts of source code without a reasoner or a model."""
        reading = read_code(self._outline(document), await self._unread(document))
        read = [(LedgerRow(c.segment_id, "ok", reasoner="syntax"), c) for c in reading]
        await self._store.record(self._ns, read)
        self._tally.read += len(read)

    async def _read_by_rules(self, document: Document) -> None:
        """Commit the facts that need no model, so that no caller waits for a reply."""
        from qrmem.answering.local import LocalReasoner

        reasoner = LocalReasoner(self._models.counter)
        reading = Reading(document.title, speaker=speaker_of(document.metadata))
        for segments in in_batches(await self._unread(document), BREATH):
            rows = [LedgerRow(one.id, "ok", reasoner=reasoner.name) for one in segments]
            contributions = [await reasoner.extract(one, reading) for one in segments]
            await self._store.record(self._ns, list(zip(rows, contributions, strict=True)))
            self._tally.read += len(segments)

    async def _unread(self, document: Document) -> list[Segment]:
        name = document.id or ""
        rows = await self._store.ledger(self._ns, name)
        pending = {row.segment_id for row in rows if row.state != "ok"}
        segments = await self._store.segments(self._ns, documents=[name])
        return [segment for segment in segments if segment.id in pending]

    async def _make_namespace(self) -> None:
        """Make the namespace with its first document, so that an empty `add` leaves nothing."""
        info = await self._models.measured_info(self._run.embedder)
        info_made = await self._store.create_namespace(self._ns, info)
        expected = replace(info, revision=info_made.revision, single=info_made.single)
        if replace(expected, turns=info_made.turns) != info_made:
            raise StoreConflict(
                f"namespace {self._ns!r} was created meanwhile with other settings; run the "
                "command again"
            )

    async def _states(self, document_id: str) -> Counter[str]:
        return Counter(row.state for row in await self._store.ledger(self._ns, document_id))

    def _pass(self, document_id: str, segments: int) -> None:
        """Pass over a complete document; it still affects which segments share a call."""
        self._tally.states["ok"] += segments
        if segments == 1:
            self._tally.source.append(document_id)

    def _enlist(self, document_id: str, states: Counter[str]) -> None:
        missing = states.total() - states["ok"]
        self._tally.batch.append(document_id)
        self._tally.source.append(document_id)
        self._tally.waiting += states["pending"]
        self._listener(Event("document", {"id": document_id, "segments": missing}))

    async def _build(self) -> None:
        await self._flush()
        tally = self._tally
        if not tally.batch:
            self._start_batch()
            return
        # LangGraph takes a second to import: in a thread, as other documents may be read already.
        await asyncio.to_thread(import_module, "qrmem.agents.building")
        from qrmem.agents import Build, build_documents

        build = Build(
            store=self._store,
            ns=self._ns,
            parts=self._run,
            options=self._options,
            tagger=self._models.tagger(self._run.reasoner),
            listener=self._listener,
            executor=self._executor(),
        )
        outcome = await build_documents(build, tally.batch, source=tally.source)
        tally.read += outcome.read
        tally.left_out += outcome.left_out
        tally.dropped += outcome.dropped
        tally.boilerplate += outcome.boilerplate
        tally.states.update(outcome.states)
        tally.problems.extend(outcome.problems)
        self._start_batch()

    def _executor(self) -> Executor | None:
        """Return the workers that read segments; `None` if this process does."""
        if self._crew is None or not self._run.reasoner.is_local:
            return None  # a chat model's calls stay in the process of their cache, caps and limits
        return self._models.by_workers(self._crew, self._run, open_entity=self._options.open_entity)

    def _start_batch(self) -> None:
        self._tally.batch, self._tally.source = [], []
        self._tally.batched = self._tally.waiting = 0

    async def _stop(self, reason: str) -> None:
        """Record why the run ends early, and the state of the documents in the last batch."""
        self._tally.stopped = reason
        self._tally.read += self._tally.waiting
        for document_id in self._tally.batch:
            states = await self._states(document_id)
            self._tally.states.update(states)
            self._tally.read -= states["pending"]
