"""Routes of `qrmem serve` for jobs, which continue without their client: `POST /jobs`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from qrmem.io.sources import Refused, documents
from qrmem.memory import Memory
from qrmem.types import Document
from qrmem.web.guard import of_user
from qrmem.web.jobs import Jobs
from qrmem.web.response_models import AddJob, of, part

if TYPE_CHECKING:
    from fastapi import FastAPI


def add_job_routes(app: "FastAPI", memory: Memory, user: str, jobs: Jobs) -> None:
    """Add the routes that start, show and cancel jobs.

    Args:
        app: the app to extend.
        memory: the memory that reads the documents.
        user: limits the routes to jobs and documents of this user; "" sets no limit.
        jobs: the jobs of the server.
    """
    from fastapi import Body, Query, Response

    @app.post(
        "/jobs",
        summary="Read documents into the memory; the reply does not wait",
        responses=of(AddJob),
    )
    async def start(
        documents: Annotated[list[dict[str, Any]], Body(min_length=1)],
        update: Annotated[bool, Body()] = False,
    ) -> Any:
        documents_given = [of_user(user, one) for one in documents] if user else documents
        return await jobs.start(memory, user, await _identified(documents_given), update=update)

    @app.get("/jobs", summary="Jobs, newest first, without reports", responses=of(list[AddJob]))
    async def listed(
        response: Response,
        offset: Annotated[int, Query(ge=0, description="number of results to skip")] = 0,
        limit: Annotated[
            int | None, Query(ge=1, le=1000, description="maximum number of results")
        ] = None,
    ) -> Any:
        return part(await jobs.listed(memory, user), offset, limit, response)

    @app.get("/jobs/{id}", summary="A job: its progress and its result", responses=of(AddJob))
    async def one(id: str) -> Any:
        return await jobs.one(memory, user, id)

    @app.delete("/jobs/{id}", summary="Cancel a job; what it read is kept", responses=of(AddJob))
    async def cancel(id: str) -> Any:
        return await jobs.cancel(memory, user, id)


async def _identified(given: Sequence[Mapping[str, Any]]) -> list[Document]:
    """Return documents, each with an id.

    Raises:
        BadDocument: one of them is not a document; then nothing of the job is kept.
    """
    documents_identified = []
    async for one in documents(given):
        if isinstance(one, Refused):
            raise one.error
        assert isinstance(one, Document)
        documents_identified.append(one)
    return documents_identified
