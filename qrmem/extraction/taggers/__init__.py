"""Entity taggers that need something installed: CoreNLP and Stanza, both through stanza."""

from qrmem.extraction.taggers.external import open_tagger

__all__ = ["open_tagger"]
