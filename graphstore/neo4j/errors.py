"""The driver's and the server's errors in our words; the one place that knows them."""

from collections.abc import Iterator
from contextlib import contextmanager
from json import JSONDecodeError

from neo4j.exceptions import (
    AuthError,
    ConfigurationError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    UnsupportedServerProduct,
)

from qrmem.errors import AccessRefused, MissingError, QrmemError, StoreUnavailable, UsageError
from qrmem.graphstore.checking import unreadable
from qrmem.graphstore.codec import Wrong

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
    """Re-raise the driver's errors as ours, one line each, cause kept."""
    try:
        yield
    except Neo4jError as exc:
        raise _from_server(exc, location) from exc
    except (DriverError, OSError) as exc:
        raise _from_driver(exc, location) from exc
    except (JSONDecodeError, Wrong) as exc:
        raise unreadable(location) from exc
    except UnicodeEncodeError as exc:
        raise UsageError("a text holds half of a surrogate pair and cannot be kept") from exc
    except OverflowError as exc:
        raise UsageError("a number is too large to be kept") from exc


def too_old(location: str, agent: str) -> MissingError:
    """Return the error for a server that is not a Neo4j of 5.26 or later.

    Args:
        agent: its name, "" if it got no further than the first four bytes. The driver does not tell
            which: TLS in front of a server answers too, in words of its own.
    """
    least = ".".join(map(str, LEAST))
    runs = agent or "an older server, or one that wants TLS (neo4j+s://, bolt+s://)"
    return MissingError(f"{location} runs {runs}; Neo4j {least} or later is needed")


def is_too_old(agent: str) -> bool:
    """Say whether a server's name, e.g. `Neo4j/5.26.20`, is too old or not Neo4j's."""
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
            "one with a certificate of its own making neo4j+ssc:// or bolt+ssc://"
        )
    if "handshake" in causes.lower() or "HTTP" in causes:
        return StoreUnavailable(
            f"{location}: what answers there does not speak Bolt as Neo4j 5.26 and later do; "
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
