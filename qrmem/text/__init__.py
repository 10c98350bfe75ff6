"""Texts and their parts: files, sentences, words, names, dates."""

import tomllib
from functools import cache
from pathlib import Path


@cache
def _lists() -> dict[str, str]:
    return tomllib.loads((Path(__file__).parent / "lists.toml").read_text(encoding="utf-8"))


def listed(name: str) -> str:
    """Return a list of English words from `lists.toml`, unchanged."""
    return _lists()[name]
