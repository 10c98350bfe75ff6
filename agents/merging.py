"""Merging what a build read: which questions count, and which names are alike."""

from collections.abc import Sequence

from qrmem.agents.likeness import alike_by
from qrmem.agents.state import BuildDeps
from qrmem.graph.merging import merge_documents
from qrmem.graph.view import Decide, decided
from qrmem.types import Contribution


async def merge_view(deps: BuildDeps, document_ids: Sequence[str]) -> None:
    """Bring the view up to date with what some documents' segments brought."""
    await merge_documents(
        deps.store,
        deps.ns,
        document_ids,
        decide=deciding(deps),
        similar=alike_by(deps.store, deps.ns, deps.embedder, deps.similar_names),
    )


def deciding(deps: BuildDeps) -> Decide:
    """Return how generated questions are decided on: not at all without the graph update."""
    return decided if deps.graph_update else _none


def _none(extractions: Sequence[Contribution]) -> Sequence[tuple[str, ...]]:
    return [()] * len(extractions)
