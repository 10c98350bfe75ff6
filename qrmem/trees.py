"""Trees of summaries over the documents of a memory: build them, look at them."""

import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

from qrmem.errors import CapReached, UsageError
from qrmem.llm.budget import Caps
from qrmem.llm.prompting import Caller
from qrmem.llm.token_budget import TokenBudget
from qrmem.models import Models, Run
from qrmem.session import Session
from qrmem.types import CallRecord, Listener
from qrmem.types.trees import Tree, TreeKind, TreeReport

if TYPE_CHECKING:
    from qrmem.agents.tree_building import TreeDeps
    from qrmem.graphstore.protocol import GraphStore

TreePreset = Literal["default", "paper"]


async def build(
    session: Session,
    document_ids: Sequence[str],
    listener: Listener,
    caps: Caps,
    *,
    kind: TreeKind = "ilm",
    preset: TreePreset = "default",
) -> TreeReport:
    """Build the trees of some documents, or of all.

    Raises:
        MissingError: the extra `tree` is not installed.
        UsageError: no such kind or preset.
        NotFound: one of the documents is not there.
    """
    from qrmem.retrieval.trees.clustering import require_tree_extra

    for name, value, allowed in (("kind", kind, TreeKind), ("preset", preset, TreePreset)):
        if value not in get_args(allowed):
            raise UsageError(f"{name} is {value!r}; choose one of {', '.join(get_args(allowed))}")
    require_tree_extra()
    await session.info()
    await session.require_documents(document_ids)
    models = await session.models()
    run = models.run("construction", listener, caps=caps)
    ids = list(document_ids) or [d.id for d in await session.store.documents(session.ns)]
    return await run_build(session.store, session.ns, models, run, ids, listener, kind, preset)


async def run_build(
    store: "GraphStore",
    ns: str,
    models: Models,
    run: Run,
    ids: Sequence[str],
    listener: Listener,
    kind: TreeKind = "ilm",
    preset: TreePreset = "default",
) -> TreeReport:
    """Build trees with the parts of a run; a cap that is reached is in the report."""
    from qrmem.agents.tree_building import build_tree

    began, done, levels, stopped = time.monotonic(), list[str](), 0, ""
    deps = _deps(store, ns, models, run, listener, kind, preset)
    try:
        for document_id in ids:
            tree = await build_tree(deps, document_id)
            done.append(document_id)
            levels = max([levels, *(node.level for node in tree.nodes)])
    except CapReached as exc:
        stopped = str(exc)
    finally:
        if run.calls:
            await store.put_calls(ns, run.calls)
    return TreeReport(
        documents=tuple(done),
        made=deps.made,
        reused=deps.reused,
        levels=levels,
        malformed=deps.malformed,
        seconds=time.monotonic() - began,
        usage=run.usage,
        stopped=stopped,
    )


def _deps(
    store: "GraphStore",
    ns: str,
    models: Models,
    run: Run,
    listener: Listener,
    kind: TreeKind,
    preset: TreePreset,
) -> "TreeDeps":
    from dataclasses import replace

    from qrmem.agents.tree_building import PAPER, Summarise, TreeDeps, TreeSettings
    from qrmem.extraction import tree_summaries
    from qrmem.prompts import load_prompts

    settings = replace(PAPER if preset == "paper" else TreeSettings(), kind=kind)
    is_plain = kind == "raptor"
    if run.meter is None:
        method = "extractive"

        async def summarise(text: tree_summaries.NodeText) -> tree_summaries.Summarised:
            run.budget.check()
            return tree_summaries.extractive(
                text, models.counter.count, limit=settings.summary_tokens, surprising=not is_plain
            )

        made: Summarise = summarise
    else:
        prompts = load_prompts(models.settings.prompts)
        prompt = tree_summaries.PLAIN_PROMPT if is_plain else tree_summaries.PROMPT
        method = f"{run.meter.name}:{prompt}:{prompts.checksum}"
        caller = Caller(run.meter, TokenBudget(models.counter), listener, prompts)
        window = models.settings.window
        made = partial(
            tree_summaries.prompted,
            caller=caller,
            window=window,
            limit=settings.summary_tokens,
            surprising=not is_plain,
        )

    def take() -> Sequence[CallRecord]:
        taken, run.calls[:] = list(run.calls), []
        return taken

    return TreeDeps(
        store=store,
        ns=ns,
        summarise=made,
        method=method,
        is_local=run.meter is None,
        count=models.counter.count,
        settings=settings,
        embedder=run.embedder,
        concurrency=models.settings.concurrency if run.meter is not None else 1,
        listener=listener,
        take_calls=take,
    )


async def trees(
    session: Session, document_ids: Sequence[str] = (), *, kind: TreeKind = "ilm"
) -> list[Tree]:
    """Return the trees of some documents, or all that there are.

    Raises:
        NotFound: one of the documents is not there.
    """
    from qrmem.retrieval.trees.nodes import load_trees

    await session.info()
    await session.require_documents(document_ids)
    found = await load_trees(session.store, session.ns, kind, list(document_ids) or None)
    return [stored.tree for stored in found]
