"""The functions that an agent can call on a memory: plain arguments in, text out.

LangChain tools, the MCP server and OpenAI's tool schema offer the same functions, so a model reads
the same text from each. Text from documents is delimited by tags, to mark it as data.
"""

from collections.abc import Awaitable, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from inspect import getdoc, signature
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from qrmem.errors import NotFound, QrmemError, UsageError, clean_name, refused
from qrmem.integrations.tool_texts import (
    MOST,
    NO_ANSWER,
    answer_text,
    entity_text,
    facts_text,
    hits_text,
    recalled_text,
    status_text,
    trail_text,
)
from qrmem.text.words import cut_note
from qrmem.types import Scalar
from qrmem.types.turns import USER_KEY, document_id_of

if TYPE_CHECKING:
    from pydantic import BaseModel

    from qrmem.memory import Memory

R = TypeVar("R")


READING = (
    "search_memory",
    "ask_memory",
    "recall_conversation",
    "look_up_entity",
    "list_facts",
    "show_trail",
    "memory_status",
)
"""Read-only functions; `ask_memory` only records its trail."""
_DECIDING = ("edit_fact", "end_fact", "delete_fact", "restore_fact")
WRITING = ("add_text", "add_turn", "remember", *_DECIDING)
SHARED = ("look_up_entity", "show_trail", "memory_status", *_DECIDING)
"""Functions over the data of all users; a toolset for one user does not offer them."""


class Toolset:
    """The functions, bound to one namespace of a memory; no argument can select another.

    Args:
        memory: an open memory.
        user: limits the functions to the turns and documents of this user; "" sets no limit. A
            model cannot select another user, as no function takes one.

    Raises:
        UsageError: `memory` is not from `qrmem.open`; for one of `qrmem.sync` the LangChain tools
            (`qrmem.tools`) work without `await`.
    """

    def __init__(self, memory: "Memory", user: str = "") -> None:
        from qrmem.memory import Memory

        if not isinstance(memory, Memory):
            raise UsageError(
                f"a Toolset needs a memory of qrmem.open, not {type(memory).__name__}; "
                "qrmem.tools(memory) accepts a memory of qrmem.sync, too"
            )
        self._memory = memory
        self.user = clean_name(user, "user")

    @property
    def _where(self) -> dict[str, Scalar] | None:
        return {USER_KEY: self.user} if self.user else None

    @staticmethod
    def functions(*, write: bool = False, user: str = "") -> tuple[str, ...]:
        """Return the names of the functions.

        Args:
            write: include the functions that add or change something.
            user: the user of the toolset; "" for a toolset over all users.
        """
        user = clean_name(user, "user")
        names = READING + (WRITING if write else ())
        return tuple(name for name in names if not (user and name in SHARED))

    @classmethod
    def described(cls, name: str) -> str:
        """Return the description of a function that a model reads: its docstring."""
        return getdoc(getattr(cls, name)) or ""

    @classmethod
    def arguments(cls, name: str) -> "type[BaseModel]":
        """Return a Pydantic model of a function's arguments; it rejects unknown arguments."""
        from pydantic import BeforeValidator, ConfigDict, create_model

        kinds = {
            int: Annotated[int, BeforeValidator(_no_truth)],
            float: Annotated[float, BeforeValidator(_no_truth)],
        }
        _, *parameters = signature(getattr(cls, name)).parameters.values()
        fields: dict[str, Any] = {
            p.name: (
                kinds.get(p.annotation, p.annotation),
                ... if p.default is p.empty else p.default,
            )
            for p in parameters
        }
        return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)

    @classmethod
    def checked(cls, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Validate the arguments of a call; return them converted to the function's types.

        Raises:
            UsageError: an argument is missing, unknown or of a wrong type; the message names it.
        """
        from pydantic import ValidationError

        model = cls.arguments(name)
        try:
            return model.model_validate(given).model_dump()
        except ValidationError as exc:
            raise UsageError(cls.wrong(name, exc.errors())) from None

    @classmethod
    def wrong(cls, name: str, errors: Iterable[Mapping[str, Any]]) -> str:
        """Return a message: what is wrong with a call's arguments, and which exist.

        Args:
            name: the function's name.
            errors: Pydantic's errors.
        """
        arguments_taken = ", ".join(cls.arguments(name).model_fields) or "none"
        return f"{refused(errors)} (arguments: {arguments_taken})"

    async def _read_or_none(self, reading: Awaitable[R]) -> R | None:
        """Return the result of a read; `None`, not an error, for a user without documents."""
        try:
            return await reading
        except NotFound:
            if self.user and not await self._memory.documents(where=self._where):
                return None
            raise

    async def search_memory(self, query: str, k: int = 5, types: str = "", as_of: str = "") -> str:
        """Find passages of the documents that match a query; returns them with their ids.

        Args:
            query: a question or keywords.
            k: number of passages, from 1 to 50.
            types: only passages about these types, such as Person, Company; empty for all.
            as_of: only what was said by this date, such as 2026-05-03, 2026-05 or 2026; empty for
                all.
        """
        query, k = _require_text(query, "query"), _count(k)
        hits = await self._read_or_none(
            self._memory.search(query, k=k, where=self._where, types=_types(types), as_of=as_of)
        )
        if hits is None:
            return hits_text([])
        return "\n".join(filter(None, [cut_note(query), hits_text(hits)]))

    async def ask_memory(self, question: str, types: str = "", as_of: str = "") -> str:
        """Answer a question from the documents, with quoted sources, or say that they do not.

        Args:
            question: one question, complete in itself.
            types: only from passages about these types, such as Person, Company; empty for all.
            as_of: by what was said, and true, on this date, such as 2026-05-03, 2026-05 or 2026;
                empty for today.
        """
        question = _require_text(question, "question")
        answer = await self._read_or_none(
            self._memory.ask(question, where=self._where, types=_types(types), as_of=as_of)
        )
        return NO_ANSWER if answer is None else answer_text(answer)

    async def recall_conversation(
        self,
        prompt: str,
        session: str = "",
        tokens: int = 2000,
        types: str = "",
        min_score: float = 0.0,
        as_of: str = "",
    ) -> str:
        """Return earlier turns of conversations that are relevant to a prompt, in order of time.

        Args:
            prompt: what the user says now.
            session: the current conversation; turns of all conversations are found.
            tokens: token limit of the turns, with speakers and times.
            types: only turns about these types, such as Person, Company; empty for all.
            min_score: leave out turns with a lower score; a strong match has 1 or more.
            as_of: only turns said by this date, such as 2026-05-03, 2026-05 or 2026; empty for all.
        """
        recalled = await self._memory.recall(
            _require_text(prompt, "prompt"),
            session=session,
            tokens=tokens,
            user=self.user or None,
            types=_types(types),
            min_score=min_score,
            as_of=as_of,
        )
        if not (recalled.related or recalled.recent):
            turns = await self._memory.documents(self._where, turns=True, limit=1)
            return "No earlier turns match." if turns else "Nothing kept yet."
        return recalled_text(recalled)

    async def look_up_entity(self, name: str, as_of: str = "") -> str:
        """Show what the memory knows about a person, place or thing: relations and passages.

        Args:
            name: any of its names.
            as_of: only what was said by this date, such as 2026-05-03, 2026-05 or 2026; empty for
                all.
        """
        name = _require_text(name, "name")
        return entity_text(await self._memory.entity(name, as_of=as_of))

    async def list_facts(
        self, name: str = "", as_of: str = "", superseded: bool = False, deleted: bool = False
    ) -> str:
        """List facts, each with its id, times, source and quotation.

        Args:
            name: a person, place or thing; empty for all.
            as_of: facts true on this date, such as 2026-05-03, 2026-05 or 2026; empty for now.
            superseded: also facts that are no longer true.
            deleted: the facts that were deleted by hand instead.
        """
        facts_found = await self._read_or_none(
            self._memory.facts(
                entity=name, user=self.user, as_of=as_of, superseded=superseded, deleted=deleted
            )
        )
        return facts_text(facts_found or [])

    async def edit_fact(
        self, fact_id: str, text: str = "", valid_from: str = "", valid_until: str = ""
    ) -> str:
        """Change the text of a fact, or the period in which it is true.

        Args:
            fact_id: its id, from list_facts.
            text: the new text; empty for no change.
            valid_from: a date such as 2026-05-03, 2026-05 or 2026; empty for no change.
            valid_until: the last date, in the same form; empty for no change.
        """
        fact = await self._memory.edit_fact(
            fact_id, text or None, valid_from=valid_from or None, valid_until=valid_until or None
        )
        return facts_text([fact])

    async def end_fact(self, fact_id: str, on: str = "") -> str:
        """End a fact: it is no longer true.

        Args:
            fact_id: its id, from list_facts.
            on: its last day, month or year; empty for today.
        """
        return facts_text([await self._memory.end_fact(fact_id, on)])

    async def delete_fact(self, fact_id: str) -> str:
        """Delete a wrong fact from the memory; the text that states it stays.

        Args:
            fact_id: its id, from list_facts.
        """
        await self._memory.delete_fact(fact_id)
        return "Deleted; restore_fact undoes this."

    async def restore_fact(self, fact_id: str) -> str:
        """Undo an edit, an end or a deletion of a fact.

        Args:
            fact_id: its id, as list_facts showed it.
        """
        return facts_text([await self._memory.restore_fact(fact_id)])

    async def show_trail(self, trail_id: str = "") -> str:
        """Show how a question was answered: what was read and dropped at each step, and why.

        Args:
            trail_id: id of a recorded run; empty for the last one.
        """
        return trail_text(await self._memory.trail(trail_id or None))

    async def memory_status(self) -> str:
        """Show the contents of the memory in figures, and what is incomplete."""
        return status_text(await self._memory.status())

    async def add_text(self, text: str, title: str = "", document_id: str = "") -> str:
        """Store a text in the memory; the same text again changes nothing.

        Args:
            text: the text, in whole sentences.
            title: its title, which is shown with quotations.
            document_id: its id; a document of this id with another text is replaced.
        """
        id = document_id
        if self.user:
            digest = sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
            id = await self._users_id(id or digest)
        document = {
            "text": _require_text(text, "text"),
            "title": title,
            "id": id or None,
            "metadata": self._where or {},
        }
        report = await self._memory.add(document, update=bool(document_id))
        document_ids = [*report.added, *report.updated, *report.unchanged]
        problems = "".join(f" Not read: {reason}." for _, _, reason in report.problems)
        return f"Kept as {', '.join(document_ids)}.{problems}"

    async def _users_id(self, id: str) -> str:
        """Return the id for a user's document, so that it cannot replace another user's.

        Raises:
            UsageError: another user's document has this id.
        """
        id = document_id_of(self.user, id)
        with suppress(NotFound):
            there = await self._memory.document(id)
            if there.metadata.get(USER_KEY) != self.user:
                raise UsageError("this document_id is taken: choose another")
        return id

    async def add_turn(
        self, role: str, text: str, session: str = "", speaker: str = "", at: str = ""
    ) -> str:
        """Store a turn of a conversation.

        Args:
            role: user or assistant.
            text: the words of the turn.
            session: the conversation that it belongs to.
            speaker: name of the speaker, if several people share a role.
            at: when it was said, such as 2026-05-03T09:00; empty for now.
        """
        id = await self._memory.add_turn(
            role, text, at=at or None, session=session, speaker=speaker, user=self.user
        )
        return f"Kept as {id}."

    async def remember(self, wish: str) -> str:
        """Keep a lasting wish of the user, which is recalled in every later conversation.

        Args:
            wish: the wish in the user's own words, such as: always answer in metric units.
        """
        id = await self._memory.add_turn(
            "user", _require_text(wish, "wish"), user=self.user, standing=True
        )
        return f"Kept as {id}."


def openai_tools(*, write: bool = False, user: str = "") -> list[dict[str, Any]]:
    """Return the functions in the form of `tools=` of OpenAI's chat completions.

    Args:
        write: include the functions that add or change something.
        user: the user of the toolset that will run them (`Toolset(memory, user)`); "" for a
            toolset over all users.
    """
    tools_found = []
    for name in Toolset.functions(write=write, user=user):
        schema = Toolset.arguments(name).model_json_schema()
        del schema["title"]
        function = {"name": name, "description": Toolset.described(name), "parameters": schema}
        tools_found.append({"type": "function", "function": function})
    return tools_found


async def as_text(tools: Toolset, name: str, /, *args: Any, **options: Any) -> str:
    """Call a function by name; return its text, or an error's message as text.

    No `QrmemError` is raised, so that an agent can continue without its memory.
    """
    if name not in tools.functions(write=True, user=tools.user):
        names = ", ".join(tools.functions(write=True, user=tools.user))
        return f"error: there is no function {name!r}; there are {names}"
    try:
        arguments_given = (
            dict(zip(tools.arguments(name).model_fields, args, strict=False)) | options
        )
        text: str = await getattr(tools, name)(**tools.checked(name, arguments_given))
    except QrmemError as exc:
        return f"error: {exc}"
    return text


def _no_truth(value: object) -> object:
    """Reject true and false, which Pydantic would convert to 1 and 0."""
    from pydantic_core import PydanticCustomError

    if isinstance(value, bool):
        raise PydanticCustomError("int_type", "Input should be a number, not true or false")
    return value


def _require_text(text: str, what: str) -> str:
    if not text.strip():
        raise UsageError(f"{what} is empty")
    return text


def _types(names: str) -> list[str] | None:
    return [name.strip() for name in names.split(",") if name.strip()] or None


def _count(k: int) -> int:
    if k < 1:
        raise UsageError(f"k must be at least 1, not {k}")
    return min(k, MOST)
