"""Statements that may clash, judged by a chat model: which later one replaces an earlier one.

A judgement is kept by its pair and goes with the segment of either statement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from qrmem.answering.with_model import PromptedReasoner
from qrmem.errors import CapReached, ModelOutputError, UsageError, WindowTooSmall
from qrmem.extraction.reply_items import VERDICTS
from qrmem.graph.superseding import judged_pairs, may_clash, pair_key
from qrmem.graphstore.protocol import Around
from qrmem.llm.parallel import in_batches
from qrmem.memory.models import Run, caps_of
from qrmem.memory.session import Session
from qrmem.text.dates import said_at
from qrmem.text.numbers import counted
from qrmem.types import Event, Fact, JudgeReport, Listener
from qrmem.types.options import CapOptions
from qrmem.types.turns import USER_KEY

TOGETHER = 8
"""Pairs that share a call."""
PER_DOCUMENT = 0.8
"""Pairs that are judged for each turn or dated document, so that it takes 0.1 calls at most."""
_LONGEST = 300
"""Characters of a statement that a model is shown."""
Pair = tuple[Fact, Fact]


async def judge(
    session: Session, listener: Listener, caps: CapOptions, *, is_plan: bool
) -> JudgeReport:
    """See `Memory.judge_facts`."""
    await session.settle()
    await session.info()
    models = await session.models()
    run = models.run("construction", listener, caps=caps_of(session.settings, **caps))
    if not isinstance(run.reasoner, PromptedReasoner) or run.caller is None:
        raise UsageError("a chat model judges statements: name one by --model, or QRMEM_MODEL")
    waiting = await _waiting(session)
    report = JudgeReport(left=waiting.left)
    if is_plan:
        prompt = models.counter.count(run.caller.prompts["judge-facts"].system)
        calls = -(-len(waiting.pairs) // TOGETHER)
        tokens = sum(models.counter.count(_told(p, waiting.names)) + _MARKS for p in waiting.pairs)
        tokens += calls * prompt
        return replace(report, pairs=len(waiting.pairs), calls=calls, tokens_in=tokens)
    session.require_writable()
    judging = _Judging(session, run, run.reasoner, waiting.names, listener)
    for batch in in_batches(waiting.pairs, TOGETHER):
        try:
            report = await judging.of(batch, report)
        except CapReached as exc:
            report = replace(report, stopped=str(exc))
            break
    used = run.usage
    return replace(report, calls=used.calls, tokens_in=used.tokens_in, usage=used)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Pairs to judge, the names of their ends, and how many are left for later."""

    pairs: Sequence[Pair]
    names: Mapping[str, str]
    left: int


async def _waiting(session: Session) -> _Waiting:
    store, ns = session.store, session.ns
    infos = {i.id: i for i in await store.documents(ns) if said_at(i.metadata)}
    segments = await store.segments(ns, documents=sorted(infos))
    user_of = {s.id: infos[s.document_id].metadata.get(USER_KEY) for s in segments}
    around = await _stated(session, sorted(user_of))
    pairs: dict[str, Pair] = {}
    for old, new in may_clash(fact for fact in around.facts if fact.segment_id in user_of):
        # Of one sentence several pairs of names are statements: one of them stands for all.
        if user_of[old.segment_id] == user_of[new.segment_id]:
            pairs.setdefault(pair_key(old, new), (old, new))
    known = await judged_pairs(store, ns)
    found = [pair for key, pair in pairs.items() if key not in known]
    most = max(0, max(TOGETHER, int(PER_DOCUMENT * len(infos))) - len(known))
    return _Waiting(found[:most], around.names, len(found[most:]))


async def _stated(session: Session, segment_ids: Sequence[str]) -> Around:
    mentions = await session.store.mentions(session.ns, segment_ids)
    keys = {key for own in mentions.named.values() for _, key in own}
    return await session.store.around(session.ns, sorted(keys))


@dataclass(frozen=True, slots=True)
class _Judging:
    """One run that judges pairs and keeps what is said of them."""

    session: Session
    run: Run
    reasoner: PromptedReasoner
    names: Mapping[str, str]
    listener: Listener

    async def of(self, batch: Sequence[Pair], report: JudgeReport) -> JudgeReport:
        """Judge some pairs by one call; what is not said of one is told, and asked again."""
        store, ns = self.session.store, self.session.ns
        segments = sorted({fact.segment_id for pair in batch for fact in pair})
        why, found = f"the reply says none of {', '.join(VERDICTS)} of them", dict[int, str]()
        try:
            found = await self.reasoner.verdicts([_told(p, self.names) for p in batch], segments)
        except (ModelOutputError, WindowTooSmall) as exc:
            why = str(exc)
        finally:
            await store.record(ns, (), self.run.take_all())
        for n, verdict in found.items():
            ids, kept = sorted({fact.segment_id for fact in batch[n]}), {"verdict": verdict}
            await store.put_cached(ns, "judgement", pair_key(*batch[n]), kept, segments=ids)
        problems = report.problems
        if missing := len(batch) - len(found):
            told = f"{counted(missing, 'pairs')} not judged: {why}"
            self.listener(Event("warning", {"what": "judgement", "message": told}))
            problems = (*problems, told)
        said = list(found.values())
        return replace(
            report,
            pairs=report.pairs + len(found),
            replaced=report.replaced + said.count("replaces"),
            agreed=report.agreed + said.count("agrees"),
            beside=report.beside + said.count("beside"),
            problems=problems,
        )


_MARKS = 12
"""Tokens of the marks around a pair."""


def _told(pair: Pair, names: Mapping[str, str]) -> str:
    """Return an earlier and a later statement as a model reads them."""
    lines = []
    for word, fact in zip(("earlier", "later"), pair, strict=True):
        head, tail = names.get(fact.head, fact.head), names.get(fact.tail, fact.tail)
        said = " ".join(f"{head} - {fact.description} - {tail}".split())
        lines.append(f"{word} ({fact.said_at[:10]}): {said[:_LONGEST]}")
    return "\n".join(lines)
