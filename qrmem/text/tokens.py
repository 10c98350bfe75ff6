"""Count tokens offline: never fewer than cl100k, and not many more.

A text is cut into the pieces within which cl100k merges bytes. A known token counts one. Any other
piece counts the most tokens that byte-pair merging can leave: merging stops only when no two
neighbours form a known token, so the longest chain of such parts is an upper bound. Pieces too long
for this count their characters, or a little more. The table of known tokens has those that occur in
prose, without ranks; `tools/build_token_table.py` builds it.
"""

import json
import re
from functools import cache, lru_cache
from importlib import resources

_LONGEST = 48
_BOUNDED = 24
_REPEATED = 3
_MEMO_SIZE = 1 << 15
_PIECE = re.compile(
    rf" ?[A-Za-z]{{1,{_LONGEST}}}+(?![^\W\d_])"
    r"|'(?:[sdmtSDMT]|[lL][lL]|[vV][eE]|[rR][eE])"
    rf"|(?:[^\w\r\n]|_)?[^\W\d_]{{1,{_LONGEST}}}"
    r"|\d{1,3}"
    rf"| ?(?:[^\s\w]|_){{1,{_LONGEST}}}[\r\n]{{0,{_LONGEST}}}"
    rf"|\s{{0,{_LONGEST}}}[\r\n]{{1,{_LONGEST}}}"
    rf"|\s{{1,{_LONGEST}}}(?!\S)"
    rf"|\s{{1,{_LONGEST}}}"
)


def pieces(text: str) -> frozenset[str]:
    """Return the pieces of a text, each once: words, runs of marks, of digits, of white space."""
    return frozenset(_PIECE.findall(text))


class BuiltinTokenizer:
    """The built-in counter, and the default of a new namespace."""

    name = "builtin-v1"

    def __init__(self) -> None:
        self._tokens, self._encoded = _table()
        self._cost = lru_cache(_MEMO_SIZE)(self._most)
        self._of_char = lru_cache(_MEMO_SIZE)(self._most_of_char)

    def count(self, text: str) -> int:
        """Return an upper bound of cl100k's count; 0 for an empty text."""
        return sum(map(self._cost, _PIECE.findall(text)))

    def cut(self, text: str, limit: int) -> str:
        """Return a prefix of at most `limit` tokens: whole pieces, or a part of the first one."""
        total = end = 0
        for match in _PIECE.finditer(text):
            total += self._cost(match[0])
            if total > limit and end:
                break
            end = match.end()
            if total > limit:
                break
        while end and self.count(text[:end]) > limit:
            end -= 1
        return text[:end]

    def _most(self, piece: str) -> int:
        """Return the most tokens that a piece can have."""
        if piece in self._tokens or (piece.isdecimal() and piece.isascii()):
            return 1
        if piece.isascii():
            is_short = len(piece) <= _BOUNDED or len(set(piece)) <= _REPEATED
            return longest_chain(piece, self._encoded) if is_short else len(piece)
        if max(piece) < "\u0800":
            return self._in_parts(_bytes(piece))
        return 1 + sum(map(self._of_char, piece))

    def _in_parts(self, raw: str) -> int:
        starts = range(0, len(raw), _BOUNDED)
        parts = (longest_chain(raw[at : at + _BOUNDED], self._encoded) for at in starts)
        return sum(parts) + 2 * (len(starts) - 1)

    def _most_of_char(self, char: str) -> int:
        return longest_chain(_bytes(char), self._encoded)


def _bytes(text: str) -> str:
    """Return the UTF-8 bytes of a text, each as one character."""
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def longest_chain(piece: str, tokens: frozenset[str]) -> int:
    """Return the largest number of parts of a piece of which no two neighbours form a known token.

    This bounds the result of merging, which would have merged such neighbours. For each end, the
    chains that reach it are kept with the start of their last part, longest first.
    """
    if piece in tokens:
        return 1
    chains: list[list[tuple[int, int]]] = [[(0, 0)]]
    for end in range(1, len(piece) + 1):
        here = [(1, 0)]
        for start in range(1, end):
            for parts, earlier in chains[start]:
                if piece[earlier:end] not in tokens:
                    here.append((parts + 1, start))
                    break
        here.sort(reverse=True)
        chains.append(here)
    return chains[-1][0][0]


@cache
def _table() -> tuple[frozenset[str], frozenset[str]]:
    """Return the known tokens as texts, and as bytes, with those that are no valid text."""
    path = resources.files("qrmem.text") / "tables" / "cl100k.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    tokens = frozenset(table["tokens"])
    encoded = (token if token.isascii() else _bytes(token) for token in tokens)
    return tokens, frozenset((*encoded, *table["fragments"]))
