"""Plans of the two runs that call a chat model, over an opened memory."""

from typing import TYPE_CHECKING, Any

from qrmem.planning.figures import Plan
from qrmem.session import Session, recorded_embedder, sketched

if TYPE_CHECKING:
    from qrmem.asking import Asking


async def plan_source(opened: Session, source: Any, **options: Any) -> Plan:
    """Return what reading a source will use; see `qrmem.planning.adding.plan_add`."""
    from qrmem.planning.adding import plan_add

    info = await opened.known() or sketched(opened.settings)
    return await plan_add(opened.store, info, opened.settings, source, **options)


async def plan_question(opened: Session, asking: "Asking") -> Plan:
    """Return what answering a question will use."""
    info = await opened.info()
    from qrmem.planning.asking import plan_ask

    embedder = recorded_embedder(info, opened.settings)
    return await plan_ask(opened.store, info, opened.settings, embedder, asking)
