"""Front matter: the fields before a Markdown text, between two lines of `---`."""

import re

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"^([A-Za-z][\w -]{0,99}):[ \t]+(\S.*)$", re.MULTILINE)


def split_front_matter(text: str) -> tuple[dict[str, str], str]:
    """Return the fields of the front matter, one line each, and the text after it.

    A text without such a block, or with a block without fields, is returned unchanged.
    """
    block = _FRONT_MATTER.match(text)
    fields = dict(_FIELD.findall(block[1])) if block else {}
    if not block or not fields:
        return {}, text
    return {name: _unquoted(value.rstrip(" \t")) for name, value in fields.items()}, text[
        block.end() :
    ]


def _unquoted(value: str) -> str:
    value = value.rstrip(" \t")
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value
