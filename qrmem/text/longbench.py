"""LongBench's words and chunks, which FragRel takes its fragments by (FragRel, section 4.1)."""

import re
from collections.abc import Iterator

_WORD = re.compile(
    r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\W\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+"
)
_SENTENCE = re.compile(r"[^.!?;\n。！？；]*(?:[.!?;\n。！？；]|$)")


def words(text: str) -> list[str]:
    """Return the words of a text in lower case; every CJK character is one."""
    return _WORD.findall(text.lower())


def chunks(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of whole sentences with at most `size` words; together they are the text.

    A sentence ends with its mark, a semicolon or a line; a longer one is a chunk of its own.
    """
    start = end = total = 0
    for match in _SENTENCE.finditer(text):
        count = len(words(match[0]))
        if total and total + count > size:
            yield start, end
            start, total = end, 0
        end, total = match.end(), total + count
    if end > start:
        yield start, end
