"""Routes of `qrmem serve` for a token of one user: only documents and turns of that user.

Entities, trails, status and merged names cover all users, so such a token has no route to them.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from qrmem.errors import NotFound, UsageError
from qrmem.memory import Memory
from qrmem.text.normalise import normalise
from qrmem.types import AddReport, Document, DocumentInfo, FactView, MetaValue, Turn
from qrmem.types.turns import SCOPES, USER_KEY, document_id_of
from qrmem.web.response_models import Added, Deleted, counted, of, part, whole

if TYPE_CHECKING:
    from fastapi import FastAPI


async def own_document(memory: Memory, user: str, id: str) -> Document:
    """Return a document of a user.

    Raises:
        NotFound: the user has no document with this id, even if another user has.
    """
    with suppress(NotFound):
        stored_document = await memory.document(id)
        if stored_document.metadata.get(USER_KEY) == user:
            return stored_document
    raise NotFound(f"no document {id!r} of {user}")


def of_user(user: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with the user in its metadata.

    Raises:
        UsageError: it has no id, or it has metadata that only the service sets.
    """
    metadata, id = document.get("metadata"), document.get("id")
    if not isinstance(id, str) or not id:
        raise UsageError("a document needs an id")
    if not isinstance(metadata, Mapping | None):
        raise UsageError(f"metadata of {id} are names with values")
    if scopes_taken := SCOPES.intersection(map(normalise, metadata or ())):
        raise UsageError(f"metadata {', '.join(sorted(scopes_taken))}: the service sets it")
    changes = {"id": document_id_of(user, id), "metadata": {**(metadata or {}), USER_KEY: user}}
    return {**document, **changes}


def looking(app: "FastAPI", memory: Memory, user: str) -> None:
    """Add the routes that read the user's documents, turns and facts."""
    from fastapi import Query, Response

    some = Annotated[
        int | None, Query(ge=1, le=1000, description="maximum number of results; default: all")
    ]
    offset = Annotated[int, Query(ge=0, le=2**31 - 1, description="number of results to skip")]

    @app.get("/documents", summary="The user's documents", responses=of(list[DocumentInfo]))
    async def documents(response: Response, offset: offset = 0, limit: some = None) -> Any:
        infos = await memory.documents({USER_KEY: user}, offset=offset, limit=limit)
        return counted(infos, response)

    @app.get("/documents/{id:whole}", summary="A document of the user", responses=of(Document))
    async def document(id: str) -> Any:
        return await own_document(memory, user, id)

    @app.get("/turns", summary="The user's turns", responses=of(list[Turn]))
    async def turns(
        response: Response, session: str | None = None, offset: offset = 0, limit: some = None
    ) -> Any:
        return part(await memory.turns(session, user=user), offset, limit, response)

    @app.get(
        "/facts", summary="The user's statements that are true now", responses=of(list[FactView])
    )
    async def facts(
        response: Response,
        entity: str = "",
        as_of: str = "",
        superseded: bool = False,
        offset: offset = 0,
        limit: some = None,
    ) -> Any:
        facts_found = await memory.facts(
            entity=entity,
            user=user,
            as_of=as_of,
            superseded=superseded,
            offset=offset,
            limit=limit,
        )
        return counted(facts_found, response)


def writing(app: "FastAPI", memory: Memory, user: str) -> None:
    """Add the routes that add and delete the user's documents and turns."""
    from fastapi import Body

    @app.post("/documents", summary="Read a text into the memory", responses=of(AddReport))
    async def add(
        text: Annotated[str, Body(min_length=1)],
        id: Annotated[str, Body(min_length=1)],
        title: Annotated[str, Body()] = "",
        metadata: Annotated[Mapping[str, MetaValue] | None, Body()] = None,
        update: Annotated[bool, Body()] = False,
    ) -> Any:
        fields = {"text": text, "title": title, "id": id, "metadata": metadata or {}}
        document = of_user(user, fields)
        try:
            await own_document(memory, user, document["id"])
        except NotFound:
            update = False  # an existing document belongs to somebody else and is not replaced
        return await memory.add(document, update=update)

    @app.delete("/documents/{id:whole}", summary="Forget a document", responses=of(Deleted))
    async def delete(id: str) -> Any:
        await own_document(memory, user, id)
        await memory.delete(id)
        return Deleted(whole(id))

    @app.post("/turns", summary="Keep a turn", responses=of(Added))
    async def add_turn(
        role: Annotated[str, Body()],
        text: Annotated[str, Body()],
        session: Annotated[str, Body()] = "",
        speaker: Annotated[str, Body()] = "",
        at: Annotated[str | None, Body()] = None,
        extract: Annotated[bool, Body()] = False,
    ) -> Any:
        return Added(
            await memory.add_turn(
                role, text, at=at, session=session, speaker=speaker, user=user, extract=extract
            )
        )
