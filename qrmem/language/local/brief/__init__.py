"""The short answer to a question, pointed at in what was read."""

from qrmem.language.local.brief.pointing import Brief, brief

__all__ = ["Brief", "brief"]
