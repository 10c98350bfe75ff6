"""`qrmem serve --tokens FILE`: what each of several tokens lets its holder do."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from qrmem import settings_files
from qrmem.errors import UsageError, clean_name, refused
from qrmem.web.guard import digest

_EXAMPLE = 'write [[token]], and below it sha256 = "…"'


class Grant(BaseModel, frozen=True, strict=True, extra="forbid"):
    """What one token lets in to.

    Attributes:
        sha256: of the token, in hex; so the file holds no secret.
        namespace: the memory; in the table "" is the one of the settings.
        user: reads and writes as this user alone; "": all of the memory.
        write: whether it may add, delete and decide.
        metrics: whether it reads the service's figures, and nothing else.
    """

    sha256: str
    namespace: str = ""
    user: str = ""
    write: bool = False
    metrics: bool = False


def grants(path: Path, namespace: str) -> Sequence[Grant]:
    """Read a table of tokens.

    Args:
        namespace: of the tokens that name none.

    Raises:
        UsageError: it cannot be read, or says something that no table says; the line names it.
    """
    try:
        rows = settings_files.read(path).values()
        if list(rows) != ["token"]:
            raise UsageError(f"no table of tokens: {_EXAMPLE}")
        try:
            found = TypeAdapter(list[Grant]).validate_python(rows["token"])
        except ValidationError as exc:
            raise UsageError(refused(exc.errors())) from None
        if found and all(grant.metrics for grant in found):
            raise UsageError("no token opens a memory")
        return [_checked(n, grant, found[: n - 1], namespace) for n, grant in enumerate(found, 1)]
    except UsageError as exc:
        raise UsageError(
            f"--tokens {path}: {str(exc).removeprefix(f'settings file {path}: ')}"
        ) from None


def _checked(n: int, grant: Grant, before: Sequence[Grant], namespace: str) -> Grant:
    sha256 = grant.sha256.lower()
    if len(sha256) != len(digest("")) or set(sha256) - set("0123456789abcdef"):
        raise UsageError(
            f"token {n}: sha256 is 64 signs of 0-9 and a-f, as `printf %s TOKEN | sha256sum` has it"
        )
    if sha256 == digest(""):
        raise UsageError(f"token {n}: sha256 is that of an empty token")
    if grant.metrics and (grant.namespace or grant.user or grant.write):
        raise UsageError(f"token {n}: metrics = true stands alone, as it opens no memory")
    if any(sha256 == other.sha256.lower() for other in before):
        raise UsageError(f"token {n}: its sha256 stands there twice")
    return Grant(
        sha256=sha256,
        namespace=clean_name(grant.namespace, "namespace") or namespace,
        user=clean_name(grant.user, "user"),
        write=grant.write,
        metrics=grant.metrics,
    )
