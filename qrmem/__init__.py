"""A graph memory for LLM agents: read a long document once, then ask it.

The first use of a name loads what it needs; `import qrmem` alone loads no database, model or
graph package.
"""

from typing import TYPE_CHECKING, Any

from qrmem.config import Secret, Settings
from qrmem.errors import QrmemError
from qrmem.types import (
    AddReport,
    Answer,
    Citation,
    Document,
    Entity,
    Hit,
    Relation,
    Step,
    Trail,
    Usage,
    Words,
)

if TYPE_CHECKING:
    __version__: str
    from qrmem.integrations.langchain import tools
    from qrmem.memory import Memory, open
    from qrmem.schema import Schema
    from qrmem.types.usage import Plan

__all__ = [
    "AddReport",
    "Answer",
    "Citation",
    "Document",
    "Entity",
    "Hit",
    "Memory",
    "Plan",
    "QrmemError",
    "Relation",
    "Schema",
    "Secret",
    "Settings",
    "Step",
    "Trail",
    "Usage",
    "Words",
    "__version__",
    "open",
    "tools",
]

_LAZY = {
    "Memory": "qrmem.memory",
    "Plan": "qrmem.types.usage",
    "Schema": "qrmem.schema",
    "open": "qrmem.memory",
    "tools": "qrmem.integrations.langchain",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("qrmem")
    if name == "sync":
        return import_module("qrmem.sync")
    raise AttributeError(f"module 'qrmem' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "sync"])
