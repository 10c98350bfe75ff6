"""Routes that change a memory, for `qrmem serve --write` and `qrmem view`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from qrmem.errors import NotFound
from qrmem.memory import Memory
from qrmem.types import AddReport, FactView, MetaValue
from qrmem.web.guard import of_user, own_document
from qrmem.web.jobs import Jobs
from qrmem.web.response_models import Added, Decision, Deleted, DeletedCount, of, whole

if TYPE_CHECKING:
    from fastapi import FastAPI


def writing(app: "FastAPI", memory: Memory, jobs: Jobs | None = None) -> None:
    """Add the routes that add and delete documents and turns."""
    from fastapi import Body

    @app.post("/documents", summary="Read a text into the memory", responses=of(AddReport))
    async def add(
        text: Annotated[str, Body(min_length=1)],
        title: Annotated[str, Body()] = "",
        id: Annotated[str | None, Body()] = None,
        metadata: Annotated[Mapping[str, MetaValue] | None, Body()] = None,
        update: Annotated[bool, Body()] = False,
    ) -> Any:
        document = {"text": text, "title": title, "id": id, "metadata": metadata or {}}
        return await memory.add(document, update=update)

    @app.delete("/documents/{id:whole}", summary="Forget a document", responses=of(Deleted))
    async def delete(id: str) -> Any:
        await memory.delete(id)
        return Deleted(whole(id))

    @app.post("/turns", summary="Keep a turn", responses=of(Added))
    async def add_turn(
        role: Annotated[str, Body()],
        text: Annotated[str, Body()],
        session: Annotated[str, Body()] = "",
        speaker: Annotated[str, Body()] = "",
        at: Annotated[str | None, Body()] = None,
        user: Annotated[str, Body()] = "",
        extract: Annotated[bool, Body()] = False,
        standing: Annotated[bool, Body()] = False,
    ) -> Any:
        id = await memory.add_turn(
            role,
            text,
            at=at,
            session=session,
            speaker=speaker,
            user=user,
            extract=extract,
            standing=standing,
        )
        return Added(id)

    @app.delete(
        "/users/{user:whole}",
        summary="Delete all turns and documents of a user",
        responses=of(DeletedCount),
    )
    async def forget_user(user: str) -> Any:
        if jobs is not None:
            await jobs.forget(memory, user)
        return DeletedCount(await memory.forget_user(user))


def deciding(app: "FastAPI", memory: Memory) -> None:
    """Add the routes that merge names and edit statements."""
    from fastapi import Body

    @app.patch(
        "/facts/{id:whole}",
        summary="Edit the words or the period of a statement",
        responses=of(FactView),
    )
    async def edit_fact(
        id: str,
        text: Annotated[str | None, Body()] = None,
        valid_from: Annotated[str | None, Body()] = None,
        valid_until: Annotated[str | None, Body()] = None,
    ) -> Any:
        return await memory.edit_fact(id, text, valid_from=valid_from, valid_until=valid_until)

    @app.post(
        "/facts/{id:whole}/end",
        summary="End a statement: it is no longer true",
        responses=of(FactView),
    )
    async def end_fact(id: str, on: Annotated[str, Body(embed=True)] = "") -> Any:
        return await memory.end_fact(id, on)

    @app.post(
        "/facts/{id:whole}/restore",
        summary="Undo an edit, an end or a deletion of a statement",
        responses=of(FactView),
    )
    async def restore_fact(id: str) -> Any:
        return await memory.restore_fact(id)

    @app.delete(
        "/facts/{id:whole}", summary="Delete a statement from the graph", responses=of(Deleted)
    )
    async def delete_fact(id: str) -> Any:
        await memory.delete_fact(id)
        return Deleted(whole(id))

    @app.post(
        "/merges", summary="Merge two names by hand, or keep them apart", responses=of(Decision)
    )
    async def decide(
        first: Annotated[str, Body()],
        second: Annotated[str, Body()],
        same: Annotated[bool, Body()] = True,
    ) -> Any:
        await (memory.merge if same else memory.separate)(first, second)
        return Decision(whole(first), whole(second), same)


def writing_of_user(app: "FastAPI", memory: Memory, user: str) -> None:
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
        standing: Annotated[bool, Body()] = False,
    ) -> Any:
        id = await memory.add_turn(
            role,
            text,
            at=at,
            session=session,
            speaker=speaker,
            user=user,
            extract=extract,
            standing=standing,
        )
        return Added(id)
