"""The driver: translated errors, Cypher by name, transactions on one namespace."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from json import JSONDecodeError
from typing import Any, Concatenate, LiteralString, ParamSpec, TypeVar

from neo4j import READ_ACCESS, AsyncDriver, AsyncManagedTransaction, AsyncSession, Query
from neo4j.exceptions import (
    AuthError,
    ConfigurationError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    UnsupportedServerProduct,
)
from tenacity import AsyncRetrying, retry_if_exception, stop_after_delay, wait_exponential

from qrmem.errors import (
    AccessRefused,
    MissingError,
    NotFound,
    QrmemError,
    StoreUnavailable,
    UsageError,
)
from qrmem.graphstore.checking import unreadable
from qrmem.graphstore.codec import DecodeError
from qrmem.graphstore.neo4j.keys import short
from qrmem.graphstore.protocol import Superseding

# Cypher by name: files in `cypher/`, several statements in each, all of it constant text.
#
# A statement starts with a line `// :: name`; its full name is `file.name`.

_NAME = re.compile(r"^// :: (.+)$", re.MULTILINE)


@cache
def statement(name: str) -> str:
    """Return the text of a statement, e.g. `stored_documents.put`.

    Raises:
        KeyError: there is no statement of that name.
    """
    file, _, part = name.partition(".")
    return statements(file)[part]


@cache
def statements(file: str) -> dict[str, str]:
    """Return all statements of a file, by name, in its order."""
    source = files("qrmem.graphstore.neo4j") / "cypher" / f"{file}.cypher"
    pieces = _NAME.split(source.read_text(encoding="utf-8"))
    return dict(zip(pieces[1::2], (text.strip() for text in pieces[2::2]), strict=True))


# Translation of the driver's and the server's errors; no other module handles them.

LEAST = (5, 26)
"""Oldest server that is known to work."""

_REFUSED = "Neo.ClientError.Security."
_RIGHTS = "Neo.ClientError.Security.Forbidden"
_TOO_OFTEN = "Neo.ClientError.Security.AuthenticationRateLimit"
_NO_DATABASE = "Neo.ClientError.Database.DatabaseNotFound"
_SYSTEM = "can only be executed in a user database"
_MEMORY = (
    "Neo.TransientError.General.MemoryPoolOutOfMemoryError",
    "Neo.TransientError.General.OutOfMemoryError",
)
_ONE_LINE = 300


@contextmanager
def translated(location: str) -> Iterator[None]:
    """Re-raise the driver's errors as ours, in one line, with their cause."""
    try:
        yield
    except Neo4jError as exc:
        raise _from_server(exc, location) from exc
    except (DriverError, OSError) as exc:
        raise _from_driver(exc, location) from exc
    except (JSONDecodeError, DecodeError) as exc:
        raise unreadable(location) from exc
    except UnicodeEncodeError as exc:
        raise UsageError("a text holds half of a surrogate pair and cannot be kept") from exc
    except OverflowError as exc:
        raise UsageError("a number is too large to be kept") from exc


def too_old(location: str, agent: str) -> MissingError:
    """Return the error for a server that is not a Neo4j of 5.26 or later.

    Args:
        agent: the server's name; "" if the connection failed at the handshake's first four bytes.
            Then the driver does not report what answered; it may be TLS in front of a server.
    """
    least = ".".join(map(str, LEAST))
    runs = agent or "an older server, or one that wants TLS (neo4j+s://, bolt+s://)"
    return MissingError(f"{location} runs {runs}; Neo4j {least} or later is needed")


def is_too_old(agent: str) -> bool:
    """Return whether a server's name, e.g. `Neo4j/5.26.20`, is too old or not Neo4j's."""
    product, _, version = agent.partition("/")
    numbers = [int(part) for part in version.split("-")[0].split(".")[:2] if part.isdigit()]
    return product != "Neo4j" or tuple(numbers) < LEAST


def _from_server(exc: Neo4jError, location: str) -> QrmemError:
    code = exc.code or ""
    if code == _NO_DATABASE or _SYSTEM in _line(exc):
        return MissingError(
            f"{location}: {_line(exc)}; set QRMEM_NEO4J_DATABASE to a database that is there, "
            "or leave it empty for the server's default"
        )
    if code == _RIGHTS:
        return AccessRefused(f"{location}: the user may not do this ({_line(exc)})")
    if code == _TOO_OFTEN:
        return AccessRefused(f"{location}: too many wrong passwords; wait some seconds, try again")
    if isinstance(exc, AuthError) or code.startswith(_REFUSED):
        return AccessRefused(
            f"{location}: user or password refused; set NEO4J_USERNAME and NEO4J_PASSWORD"
        )
    if code in _MEMORY:
        return StoreUnavailable(
            f"{location}: the server has too little memory for one transaction; give it more heap"
            " (server.memory.heap.max_size)"
        )
    return StoreUnavailable(f"{location}: {_line(exc)}")


def _from_driver(exc: Exception, location: str) -> QrmemError:
    if isinstance(exc, UnsupportedServerProduct):
        return too_old(location, "")
    if isinstance(exc, ConfigurationError):
        return UsageError(f"{location}: {_line(exc)}")
    causes = "; ".join(_chain(exc))
    if "SSL" in causes or "BoltSecurityError" in causes:
        return StoreUnavailable(
            f"{location}: no encrypted connection; a server without TLS is neo4j:// or bolt://, "
            "one with a self-signed certificate neo4j+ssc:// or bolt+ssc://"
        )
    if "handshake" in causes.lower() or "HTTP" in causes:
        return StoreUnavailable(
            f"{location}: the server there does not speak the Bolt protocol of Neo4j 5.26 or "
            "later; "
            "is it the Bolt port (7687, not 7474), and does the server want TLS (neo4j+s://)?"
        )
    if "+s" in location.partition("://")[0]:
        return StoreUnavailable(f"{location} does not answer; is Neo4j running there, with TLS?")
    if isinstance(exc, ServiceUnavailable | SessionExpired | OSError):
        return StoreUnavailable(f"{location} does not answer; is Neo4j running there?")
    return StoreUnavailable(f"{location}: {_line(exc)}")


def _causes(exc: BaseException | None) -> Iterator[BaseException]:
    while exc is not None:
        yield exc
        exc = exc.__cause__ or exc.__context__


def _chain(exc: BaseException) -> Iterator[str]:
    for cause in _causes(exc):
        yield f"{type(cause).__name__}: {cause}"


def _line(exc: Exception) -> str:
    text = " ".join(str(getattr(exc, "message", None) or exc).split())
    return text if len(text) <= _ONE_LINE else text[: _ONE_LINE - 1] + "…"


P = ParamSpec("P")
R = TypeVar("R")
Row = list[Any]
Properties = dict[str, Any]
"""A row to send to the database."""
Runner = AsyncManagedTransaction | AsyncSession
"""What runs statements: a transaction, or a session that has one for each statement."""
Step = tuple[str, Iterable[Any]]
"""A named statement with its rows."""

MAX_WRITERS = 4
"""Maximum number of parallel writes of this process; more would only wait for locks."""

MAX_BYTES = 1 << 20
"""Approximate maximum size of a statement's rows."""

MAX_ROWS = 5_000

_AT_ONCE = ("EquivalentSchemaRule", "IndexAlreadyExists", "ConstraintAlreadyExists")
"""The server's error for the later of two clients that create the same index at once."""

_LONGEST_PAUSE = 1.0

_CELL = 9  # a number, or what goes with a text


class Work:
    """Statements on one namespace; every statement gets its short name as `$ns`.

    All other values go as one map, `$all`. The server reuses a plan only for parameters of similar
    sizes: with separate lists, it planned nearly every change of real texts again.
    """

    def __init__(self, tx: Runner, ns: str, superseding: Superseding | None = None) -> None:
        self._tx = tx
        self.ns = ns
        self.superseding = superseding

    async def rows(self, name: str, **values: Any) -> list[Row]:
        """Run a named statement; return its rows."""
        result = await self._tx.run(_text(name), ns=short(self.ns), all=values)
        return [list(record) async for record in result]

    async def row(self, name: str, **values: Any) -> Row | None:
        """Run a named statement; return its first row."""
        return next(iter(await self.rows(name, **values)), None)

    async def run(self, name: str, **values: Any) -> None:
        """Run a named statement that returns nothing."""
        result = await self._tx.run(_text(name), ns=short(self.ns), all=values)
        await result.consume()

    async def each(self, name: str, rows: Iterable[Any], **values: Any) -> list[Row]:
        """Run a named statement on `$all.rows`, in batches; return all rows that come back."""
        result: list[Row] = []
        for batch in batches(rows):
            result += await self.rows(name, rows=batch, **values)
        return result

    async def together(self, steps: Sequence[Step]) -> None:
        """Run named statements that return nothing, each on its own `$all.rows`, in order.

        They go to the server as one statement, or as a few if there are many rows. The round trip
        is most of the cost of an ordinary change.

        Args:
            steps: statements that return nothing. Always give the same ones in the same order, so
                that the server plans them once.
        """
        text = _joined(tuple(name for name, _ in steps))
        rows = ((n, row) for n, (_, step_rows) in enumerate(steps) for row in step_rows)
        for batch in batches(rows):
            values: dict[str, Any] = {f"rows{n}": [] for n in range(len(steps))}
            for n, row in batch:
                values[f"rows{n}"].append(row)
            result = await self._tx.run(text, ns=short(self.ns), all=values)
            await result.consume()

    async def gathered(self, name: str, rows: Iterable[Any], **values: Any) -> list[Any]:
        """Run a named statement that returns one list of rows on `$all.rows`, in batches.

        The driver needs 20 µs or more for each record, so thousands of rows come as one value.
        """
        return [item for (batch,) in await self.each(name, rows, **values) for item in batch]

    async def lock(self) -> int:
        """Keep other writers off the namespace until the transaction ends; return its revision.

        All writers take this lock first, so that they cannot deadlock.

        Raises:
            NotFound: there is no such namespace.
        """
        row = await self.row("namespaces.lock")
        if row is None:
            raise NotFound(f"there is no namespace {self.ns!r} in this memory")
        return int(row[0])


class Connection:
    """A driver on one database; every call is retried if that may help.

    Args:
        patience: seconds for which reads, and statements outside a transaction, are retried; the
            driver has its own limit for transactions.
    """

    def __init__(
        self, driver: AsyncDriver, database: str | None, location: str, patience: float
    ) -> None:
        from neo4j import AsyncGraphDatabase

        self.location = location
        self._driver = driver
        self._database = database
        self._patience = patience
        self._bookmarks = AsyncGraphDatabase.bookmark_manager()
        self._writers = asyncio.Semaphore(MAX_WRITERS)
        self._is_closed = False
        self.superseding: Superseding | None = None

    def _work(self, tx: Runner, ns: str) -> Work:
        return Work(tx, ns, self.superseding)

    async def read(
        self,
        work: Callable[Concatenate[Work, P], Awaitable[R]],
        ns: str,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Run work that only reads, each statement in a transaction of its own.

        The server sees the same as in one transaction, which reads what is committed by each
        statement too, but begin and commit would be two more round trips.
        """

        async def once() -> R:
            async with self._session(default_access_mode=READ_ACCESS) as session:
                return await work(self._work(session, ns), *args, **kwargs)

        return await self._tried(once)

    async def write(
        self,
        work: Callable[Concatenate[Work, P], Awaitable[R]],
        ns: str,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Run work in a transaction that writes."""
        with translated(self.location):
            async with self._writers, self._session() as session:
                return await session.execute_write(
                    lambda tx: work(self._work(tx, ns), *args, **kwargs)
                )

    async def outside(self, text: str, **values: Any) -> list[Row]:
        """Run a statement that cannot run in a transaction (schema changes, deletion in batches).

        It is retried like a transaction, so it must be safe to run twice.
        """
        return await self._tried(self._once, text, values)

    async def _tried(self, once: Callable[P, Awaitable[R]], *args: P.args, **kwargs: P.kwargs) -> R:
        tries = AsyncRetrying(
            retry=retry_if_exception(_may_help),
            stop=stop_after_delay(self._patience),
            wait=wait_exponential(0.05, max=_LONGEST_PAUSE),
            reraise=True,
        )
        with translated(self.location):
            return await tries(once, *args, **kwargs)

    async def _once(self, text: str, values: Mapping[str, Any]) -> list[Row]:
        async with self._session() as session:
            result = await session.run(Query(text), **values)
            return [list(record) async for record in result]

    async def agent(self) -> str:
        """Return the server's name and version."""
        with translated(self.location):
            try:
                return (await self._driver.get_server_info()).agent
            except ConfigurationError as exc:  # the server's protocol lacks a requested feature
                raise too_old(self.location, "") from exc

    async def settle(self) -> None:
        """Find the name of the default database, and use it from now on."""
        with translated(self.location):
            async with self._session() as session:
                summary = await (await session.run("RETURN 1")).consume()
        self._database = summary.database or self._database

    async def close(self) -> None:
        """Give all connections back."""
        self._is_closed = True
        await self._driver.close()

    def _session(self, **options: Any) -> AsyncSession:
        if self._is_closed:
            raise StoreUnavailable(f"{self.location} is closed")
        return self._driver.session(
            database=self._database,
            bookmark_manager=self._bookmarks,
            fetch_size=-1,  # every caller reads all rows
            **options,
        )


def _text(name: str) -> LiteralString:
    return statement(name)


@cache
def _joined(names: tuple[str, ...]) -> LiteralString:
    """Join named statements into one; their rows are `$all.rows0`, `$all.rows1` and so on."""
    texts = (statement(name).replace("$all.rows", f"$all.rows{n}") for n, name in enumerate(names))
    return "\n".join(f"CALL () {{\n{text}\n}}" for text in texts)


def batches(rows: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the rows in order, at least one and at most about `MAX_BYTES` of them at a time."""
    batch: list[Any] = []
    size = 0
    for row in rows:
        weight = _weight(row)
        if batch and (size + weight > MAX_BYTES or len(batch) >= MAX_ROWS):
            yield batch
            batch, size = [], 0
        batch.append(row)
        size += weight
    if batch:
        yield batch


def _weight(value: Any) -> int:
    kind = type(value)
    if kind is str:
        return (len(value) if value.isascii() else len(value.encode())) + _CELL
    if kind is bytes:
        return len(value) + _CELL
    if kind is dict:
        return sum(len(key) + _weight(item) for key, item in value.items()) + _CELL
    if kind is list or kind is tuple:
        return sum(map(_weight, value)) + _CELL
    return _CELL


def _may_help(exc: BaseException) -> bool:
    """Return whether a statement that failed with this error may succeed on a retry."""
    if isinstance(exc, Neo4jError) and any(word in (exc.code or "") for word in _AT_ONCE):
        return True
    return isinstance(exc, DriverError | Neo4jError) and exc.is_retryable()
