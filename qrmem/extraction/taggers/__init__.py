"""Entity taggers that need something installed: CoreNLP and Stanza, both through stanza (Q05)."""

from qrmem.extraction.taggers.opening import open_tagger

__all__ = ["open_tagger"]
