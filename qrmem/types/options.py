"""What a run is told: one frozen object for each kind of run, checked where it is made.

The methods of a memory take the same as keywords; see `qrmem.memory.Memory`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypedDict, cast, get_args

from qrmem.errors import UsageError, require_count, require_text
from qrmem.types.fragments import FragmentSettings

RecallMethod = Literal["turns", "fragrel"]


class CapOptions(TypedDict, total=False):
    """Upper bounds of one run; they are named like the settings that they beat."""

    max_calls: int | None
    max_tokens: int | None
    max_cost: float | None
    max_seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOptions:
    """How a source is read; see `Memory.add`.

    Attributes:
        user: of messages, as `session` and `extract`.
        open_entity: see `qrmem.agents.BuildDeps`; only evaluation turns it off.
    """

    update: bool = False
    rebuild: bool = False
    glob: str | None = None
    follow_links: bool = False
    question: str = ""
    user: str = ""
    session: str = ""
    extract: bool = False
    caps: CapOptions = field(default_factory=CapOptions)
    open_entity: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOptions:
    """What is recalled of conversations; see `Memory.recall`."""

    prompt: str
    session: str = ""
    tokens: int = 2000
    how: RecallMethod = "turns"
    fragments: FragmentSettings | None = None
    user: str | None = None

    def __post_init__(self) -> None:
        require_text(self.prompt, "the prompt")
        require_count(self.tokens, "tokens")
        require_names(self.session, self.user)
        if self.how not in get_args(RecallMethod):
            raise UsageError(f"how is {self.how!r}; choose turns or fragrel")


def options_of(kind: type[AddOptions], given: Mapping[str, Any], **more: Any) -> AddOptions:
    """Return the options of a run from keywords; `None` is as good as left out.

    Args:
        given: the caps among them become one.

    Raises:
        UsageError: there is no option of a name.
    """
    caps = {name: given[name] for name in given.keys() & CapOptions.__annotations__.keys()}
    rest = {name: value for name, value in given.items() if name not in caps}
    if unknown := sorted(rest.keys() - {one.name for one in fields(kind)}):
        raise UsageError(f"there is no such option: {unknown[0]!r}")
    chosen = {name: value for name, value in rest.items() if value is not None}
    return kind(**more, **chosen, caps=cast(CapOptions, caps))


def require_names(session: str | None, user: str | None) -> None:
    """Refuse names that no turn can have; `None` is none.

    Raises:
        UsageError: one of them is no text.
    """
    for what, name in (("session", session), ("user", user)):
        if name is not None and not isinstance(name, str):
            raise UsageError(f"{what} must be text, not {type(name).__name__}")
