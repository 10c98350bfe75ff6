"""Build and show summary trees over the documents of a memory."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

from qrmem.errors import CapReached, UsageError, require_ids
from qrmem.llm.budget import Caps
from qrmem.llm.run import Run
from qrmem.memory.runtime import Models
from qrmem.memory.session import Session
from qrmem.types import Listener
from qrmem.types.documents import TreeKind, TreeNode, TreeReport, TreeTop

if TYPE_CHECKING:
    from qrmem.agents.tree_building import Summarise, TreeSettings
    from qrmem.graphstore.protocol import GraphStore
    from qrmem.types.usage import Course

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
        UsageError: the kind or preset is unknown.
        NotFound: one of the documents does not exist.
    """
    from qrmem.retrieval.trees.clustering import require_tree_extra

    require_known(kind, preset)
    require_tree_extra()
    await session.info()
    tree_documents = await session.require_documents(document_ids)
    models = await session.models()
    run = models.run("construction", listener, caps=caps)
    ids = tree_documents or await session.store.document_ids(session.ns)
    return await run_build(session.store, session.ns, models, run, ids, listener, kind, preset)


def require_known(kind: str, preset: str) -> None:
    """Refuse an unknown kind or preset.

    Raises:
        UsageError: the kind or preset is unknown.
    """
    for name, value, allowed in (("kind", kind, TreeKind), ("preset", preset, TreePreset)):
        if value not in get_args(allowed):
            raise UsageError(f"{name} is {value!r}; choose one of {', '.join(get_args(allowed))}")


async def run_build(
    store: "GraphStore",
    ns: str,
    models: Models,
    run: Run,
    ids: Sequence[str],
    listener: Listener,
    kind: TreeKind = "ilm",
    preset: TreePreset = "default",
    *,
    summary_tokens: int = 300,
    course: "Course | None" = None,
) -> TreeReport:
    """Build trees with the parts of a run; the report says if a cap was reached.

    Args:
        summary_tokens: token limit of a node's summary.
        course: the course of a plan; see `TreeDeps`.
    """
    from qrmem.agents.tree_building import PAPER, TreeDeps, TreeSettings, build_tree

    began, documents_done, levels, stopped = time.monotonic(), list[str](), 0, ""
    made_as = PAPER if preset == "paper" else TreeSettings()
    settings = replace(made_as, kind=kind, summary_tokens=summary_tokens)
    summarise, method = _summariser(models, run, settings, is_paper=preset == "paper")
    deps = TreeDeps(
        store=store,
        ns=ns,
        summarise=summarise,
        method=method,
        is_local=run.meter is None,
        count=models.counter.count,
        settings=settings,
        embedder=run.embedder,
        concurrency=models.settings.concurrency if run.meter is not None else 1,
        listener=listener,
        take_calls=run.take_all,
        course=course,
    )
    try:
        for document_id in ids:
            tree = await build_tree(deps, document_id)
            documents_done.append(document_id)
            levels = max([levels, *(node.level for node in tree.nodes)])
    except CapReached as exc:
        stopped = str(exc)
    finally:
        if run.calls:
            await store.record(ns, (), run.calls)
    return TreeReport(
        documents=tuple(documents_done),
        made=deps.made,
        reused=deps.reused,
        levels=levels,
        malformed=deps.malformed,
        seconds=time.monotonic() - began,
        usage=run.usage,
        stopped=stopped,
    )


def _summariser(
    models: Models, run: Run, settings: "TreeSettings", *, is_paper: bool
) -> "tuple[Summarise, str]":
    """Return the writer of a node's texts, and its name in the nodes' keys."""
    from qrmem.extraction import summaries

    is_plain = settings.kind == "raptor"
    if run.meter is None or run.caller is None:

        async def extracted(text: summaries.NodeText) -> summaries.Summarised:
            run.budget.check()
            return summaries.extractive(
                text, models.counter.count, limit=settings.summary_tokens, surprising=not is_plain
            )

        return extracted, "extractive"
    prompt = summaries.PLAIN_PROMPT if is_plain else summaries.PROMPT
    prompted = partial(
        summaries.prompted,
        caller=run.caller,
        window=models.settings.window,
        limit=settings.summary_tokens,
        surprising=not is_plain,
        is_paper=is_paper,
    )
    return prompted, f"{run.meter.name}:{prompt}:{run.caller.prompts.checksum}"


async def tops(session: Session) -> Sequence[TreeTop]:
    """Return all trees without their nodes."""
    from qrmem.retrieval.trees.nodes import load_tops

    await session.known()
    return await load_tops(session.store, session.ns)


async def nodes(session: Session, keys: Iterable[str]) -> Sequence[TreeNode]:
    """Return nodes by their keys, in this order."""
    from qrmem.retrieval.trees.nodes import TREE, load

    require_ids(keys)
    await session.known()
    node_keys = [key for key in keys if key.startswith(TREE)]
    stored_nodes = await load(session.store, session.ns, node_keys)
    return [stored_nodes[key].node for key in dict.fromkeys(node_keys) if key in stored_nodes]
