"""Routes of `qrmem serve` for long adds, which go on when the client has gone: `POST /jobs`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from qrmem.io.sources import Refused, documents
from qrmem.memory import Memory
from qrmem.types import Document
from qrmem.web.jobs import Jobs
from qrmem.web.replies import Job, of, part
from qrmem.web.user_api import of_user

if TYPE_CHECKING:
    from fastapi import FastAPI


def handing_over(app: "FastAPI", memory: Memory, user: str, jobs: Jobs) -> None:
    """Let clients hand documents over, and look at what becomes of them.

    Args:
        user: whose jobs alone are shown, and whose documents they bring; "": everybody's.
    """
    from fastapi import Body, Query, Response

    @app.post(
        "/jobs",
        summary="Read documents into the memory; the reply does not wait",
        responses=of(Job),
    )
    async def start(
        documents: Annotated[list[dict[str, Any]], Body(min_length=1)],
        update: Annotated[bool, Body()] = False,
    ) -> Any:
        given = [of_user(user, one) for one in documents] if user else documents
        return await jobs.start(memory, user, await _identified(given), update=update)

    @app.get("/jobs", summary="Jobs, newest first, without reports", responses=of(list[Job]))
    async def listed(
        response: Response,
        offset: Annotated[int, Query(ge=0, description="how many to pass over")] = 0,
        limit: Annotated[int | None, Query(ge=1, le=1000, description="at most so many")] = None,
    ) -> Any:
        return part(jobs.listed(memory, user), offset, limit, response)

    @app.get("/jobs/{id}", summary="A job: how far it is, what came of it", responses=of(Job))
    async def one(id: str) -> Any:
        return await jobs.one(memory, user, id)

    @app.delete("/jobs/{id}", summary="Cancel a job; what it read stays", responses=of(Job))
    async def cancel(id: str) -> Any:
        return await jobs.cancel(memory, user, id)


async def _identified(given: Sequence[Mapping[str, Any]]) -> list[Document]:
    """Return documents, each with an id.

    Raises:
        BadDocument: one of them is none, so nothing of the job is kept.
    """
    found = []
    async for one in documents(given):
        if isinstance(one, Refused):
            raise one.error
        assert isinstance(one, Document)
        found.append(one)
    return found
