"""Build the table of the offline token counter from a `cl100k_base.tiktoken` file.

    python tools/build_token_table.py cl100k_base.tiktoken qrmem/text/tables/cl100k.json

The table says which strings cl100k reads as one token, for the strings that occur in prose: words
in lower case or with a capital, short capitals, marks and white space, words of other scripts, and
the byte sequences that rare characters are made of. Ranks and merges are left out.
"""

import base64
import json
import re
import sys
from pathlib import Path

COMMON = 20_000
_WORD = re.compile(r" ?[A-Z]?[a-z]+\Z| ?[A-Z]{1,3}\Z")
_MARKED = re.compile(r"[^A-Za-z0-9][a-z]{1,3}\Z|'[A-Za-z]+\Z")
_LETTER = re.compile(r"[A-Za-z0-9]")


def belongs(token: str, rank: int) -> bool:
    """Return whether a token is useful for prose."""
    if not token.isascii() or _WORD.match(token):
        return True
    if not _LETTER.search(token):
        return rank < COMMON or token.isspace()
    return rank < COMMON and bool(_MARKED.match(token))


def main(source: Path, target: Path) -> None:
    """Write the table as JSON: tokens that are text, and bytes (as Latin-1) that are none."""
    tokens, fragments = [], []
    for line in source.read_text(encoding="ascii").split("\n"):
        if not line:
            continue
        encoded, rank = line.split()
        raw = base64.b64decode(encoded)
        try:
            if belongs(raw.decode(), int(rank)):
                tokens.append(raw.decode())
        except UnicodeDecodeError:
            fragments.append(raw.decode("latin-1"))
    table = {"tokens": sorted(tokens), "fragments": sorted(fragments)}
    rows = (f'"{name}": [\n{_rows(values)}\n]' for name, values in table.items())
    target.write_text("{" + ",\n".join(rows) + "}\n", encoding="utf-8")


def _rows(values: list[str]) -> str:
    texts = [json.dumps(value, ensure_ascii=False) for value in values]
    return ",\n".join(",".join(texts[at : at + 50]) for at in range(0, len(texts), 50))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
