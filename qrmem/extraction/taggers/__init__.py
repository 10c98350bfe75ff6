"""Entity taggers of the extra `taggers`: CoreNLP and Stanza, both by the package stanza."""

from qrmem.extraction.taggers.external import open_tagger

__all__ = ["open_tagger"]
