"""A chat model judges statements that may clash: which later one replaces an earlier one?

A judgement is stored under its pair, and deleted with the segment of either statement.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from qrmem.errors import CapReached, ModelOutputError, UsageError, WindowTooSmall
from qrmem.graph.superseding import judged_pairs, may_clash, pair_key
from qrmem.graphstore.protocol import Around
from qrmem.llm.parallel import in_batches
from qrmem.llm.run import Run
from qrmem.memory.runtime import caps_of
from qrmem.memory.session import Session
from qrmem.text.dates import said_at
from qrmem.text.numbers import counted
from qrmem.types import Event, Fact, JudgeReport, Listener
from qrmem.types.options import CapOptions
from qrmem.types.turns import USER_KEY

if TYPE_CHECKING:
    from qrmem.answering.with_model import PromptedReasoner


TOGETHER = 8
"""Maximum number of pairs in a call."""
PER_DOCUMENT = 0.8
"""Maximum number of pairs for each turn or dated document, so that it costs 0.1 calls at most."""
_LONGEST = 300
"""Maximum number of characters of a statement in a prompt."""
Pair = tuple[Fact, Fact]


async def judge(
    session: Session, listener: Listener, caps: CapOptions, *, is_plan: bool
) -> JudgeReport:
    """Ask the chat model which statements later ones replace, or estimate its cost."""
    # Loads pydantic, which a search does not need.
    from qrmem.answering.with_model import PromptedReasoner

    await session.settle()
    await session.info()
    models = await session.models()
    run = models.run("construction", listener, caps=caps_of(session.settings, **caps))
    if not isinstance(run.reasoner, PromptedReasoner) or run.caller is None:
        raise UsageError(
            "judging statements needs a chat model: name one with --model or QRMEM_MODEL"
        )
    waiting = await _waiting(session)
    report = JudgeReport(left=waiting.left)
    if is_plan:
        prompt = models.counter.count(run.caller.prompts["judge-facts"].system)
        calls = -(-len(waiting.pairs) // TOGETHER)
        tokens = sum(
            models.counter.count(_pair_in_words(p, waiting.names)) + _MARKS for p in waiting.pairs
        )
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
    usage = run.usage
    return replace(report, calls=usage.calls, tokens_in=usage.tokens_in, usage=usage)


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Pairs to judge, the names of their ends, and how many pairs are left for later."""

    pairs: Sequence[Pair]
    names: Mapping[str, str]
    left: int


async def _waiting(session: Session) -> _Waiting:
    store, ns = session.store, session.ns
    infos = {i.id: i for i in await store.documents(ns) if said_at(i.metadata)}
    segments = await store.segments(ns, documents=sorted(infos))
    user_of = {s.id: infos[s.document_id].metadata.get(USER_KEY) for s in segments}
    around = await _stated_by_users(session, sorted(user_of))
    pairs: dict[str, Pair] = {}
    for old, new in may_clash(fact for fact in around.facts if fact.segment_id in user_of):
        # One sentence may give statements about several pairs of names: one represents all.
        if user_of[old.segment_id] == user_of[new.segment_id]:
            pairs.setdefault(pair_key(old, new), (old, new))
    judged = await judged_pairs(store, ns)
    pairs_waiting = [pair for key, pair in pairs.items() if key not in judged]
    most = max(0, max(TOGETHER, int(PER_DOCUMENT * len(infos))) - len(judged))
    return _Waiting(pairs_waiting[:most], around.names, len(pairs_waiting[most:]))


async def _stated_by_users(session: Session, segment_ids: Sequence[str]) -> Around:
    mentions = await session.store.mentions(session.ns, segment_ids)
    keys = {key for pair_keys in mentions.named.values() for _, key in pair_keys}
    return await session.store.around(session.ns, sorted(keys))


@dataclass(frozen=True, slots=True)
class _Judging:
    """One run that judges pairs and stores the judgements."""

    session: Session
    run: Run
    reasoner: "PromptedReasoner"
    names: Mapping[str, str]
    listener: Listener

    async def of(self, batch: Sequence[Pair], report: JudgeReport) -> JudgeReport:
        """Judge some pairs with one call; retry and then report pairs without a judgement."""
        store, ns = self.session.store, self.session.ns
        segments = sorted({fact.segment_id for pair in batch for fact in pair})
        from qrmem.extraction.fact_extraction import VERDICTS

        why, verdict_of = (
            f"the reply has none of {', '.join(VERDICTS)}",
            dict[int, str](),
        )
        try:
            verdict_of = await self.reasoner.verdicts(
                [_pair_in_words(p, self.names) for p in batch], segments
            )
        except (ModelOutputError, WindowTooSmall) as exc:
            why = str(exc)
        finally:
            await store.record(ns, (), self.run.take_all())
        for n, verdict in verdict_of.items():
            ids, value = sorted({fact.segment_id for fact in batch[n]}), {"verdict": verdict}
            await store.put_cache_entry(ns, "judgement", pair_key(*batch[n]), value, segments=ids)
        problems = report.problems
        if missing := len(batch) - len(verdict_of):
            problem = f"{counted(missing, 'pairs')} not judged: {why}"
            self.listener(Event("warning", {"what": "judgement", "message": problem}))
            problems = (*problems, problem)
        verdicts = list(verdict_of.values())
        return replace(
            report,
            pairs=report.pairs + len(verdict_of),
            replaced=report.replaced + verdicts.count("replaces"),
            agreed=report.agreed + verdicts.count("agrees"),
            beside=report.beside + verdicts.count("beside"),
            problems=problems,
        )


_MARKS = 12
"""Tokens of the labels around a pair."""


def _pair_in_words(pair: Pair, names: Mapping[str, str]) -> str:
    """Return an earlier and a later statement in the form of the prompt."""
    lines = []
    for word, fact in zip(("earlier", "later"), pair, strict=True):
        head, tail = names.get(fact.head, fact.head), names.get(fact.tail, fact.tail)
        sentence = " ".join(f"{head} - {fact.description} - {tail}".split())
        lines.append(f"{word} ({fact.said_at[:10]}): {sentence[:_LONGEST]}")
    return "\n".join(lines)
