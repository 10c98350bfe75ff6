"""Conversations over HTTP: which there are, and what was said with its facts and corrections."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from qrmem.memory import Memory
from qrmem.text.dates import said_at
from qrmem.types import DocumentInfo, Turn
from qrmem.types.turns import CHAT_KEY, FACT_KEY, ROLE_KEY, USER_KEY, turn_number
from qrmem.web.replies import SaidTurn, Session, of, part

if TYPE_CHECKING:
    from fastapi import FastAPI

_SPEAKERS = 4
"""Of a session that are named."""


def conversing(app: "FastAPI", memory: Memory) -> None:
    """Let clients look at conversations."""
    from fastapi import Query, Response

    limit = Annotated[int, Query(ge=1, le=1000)]
    offset = Annotated[int, Query(ge=0, le=10**9, description="how many to pass over")]

    @app.get("/sessions", summary="Conversations, the latest first", responses=of(list[Session]))
    async def sessions(response: Response, offset: offset = 0, limit: limit = 1000) -> Any:
        return part(sessions_of(await memory.documents()), offset, limit, response)

    @app.get(
        "/conversation",
        summary="What was said in a session, with what was noted of it and what corrects it",
        responses=of(list[SaidTurn]),
    )
    async def conversation(
        response: Response,
        session: str = "",
        user: str = "",
        offset: offset = 0,
        limit: limit = 50,
        corrections: bool = True,
    ) -> Any:
        said = [turn for turn in await memory.turns(session) if turn.user == user]
        shown: list[Turn] = part(said, offset, limit, response)
        later = await memory.corrections([turn.id for turn in shown]) if corrections else {}
        noted = await _noted(memory, session, shown)
        return [
            SaidTurn(
                **asdict(turn), facts=noted.get(turn.id, ()), corrected_by=later.get(turn.id, ())
            )
            for turn in shown
        ]


def is_turn(info: DocumentInfo) -> bool:
    """Whether a document keeps a turn, or what was noted of one."""
    return turn_number(info.id, info.metadata) > 0


def sessions_of(infos: Iterable[DocumentInfo]) -> list[Session]:
    """Return the conversations that some documents are of, the latest first."""
    found: dict[tuple[str, str], list[DocumentInfo]] = {}
    for info in infos:
        if is_turn(info) and FACT_KEY not in info.metadata:
            of_whom = str(info.metadata.get(USER_KEY, "")), str(info.metadata[CHAT_KEY])
            found.setdefault(of_whom, []).append(info)
    rows = [_session(*of_whom, turns) for of_whom, turns in found.items()]
    return sorted(rows, key=lambda row: (row.last, row.user, row.session), reverse=True)


def _session(user: str, session: str, turns: Sequence[DocumentInfo]) -> Session:
    times = sorted(filter(None, (said_at(info.metadata) for info in turns)))
    speakers = dict.fromkeys(
        str(info.metadata.get("speaker") or info.metadata[ROLE_KEY]) for info in turns
    )
    first, last = (times[0], times[-1]) if times else ("", "")
    return Session(session, user, len(turns), first, last, tuple(speakers)[:_SPEAKERS])


async def _noted(memory: Memory, session: str, turns: Sequence[Turn]) -> dict[str, list[str]]:
    """Return what a chat model noted of turns, by their ids."""
    wanted = {turn.id for turn in turns}
    found: dict[str, list[str]] = {}
    for info in await memory.documents({CHAT_KEY: session}):
        of_turn = str(info.metadata.get(FACT_KEY, ""))
        if of_turn in wanted and is_turn(info):
            found.setdefault(of_turn, []).append((await memory.document(info.id)).text)
    return found
