"""Sentences by rule: spans that partition a text exactly.

A maintained library would be better, but rule-based ones (pysbd, syntok) are far slower or drop
white space, and those with a model are larger than this whole package.
"""

import re

from qrmem.text import listed

_HONORIFICS = """
mr mrs ms messrs mme mlle dr drs prof rev revd gov sen capt cpt lt cmdr sgt cpl pvt adm ste mt insp
"""
HONORIFICS = frozenset(_HONORIFICS.split())
"""Words (lower case, no dots) after which a full stop never ends a sentence."""

ABBREVIATIONS = frozenset(listed("abbreviations").split())
"""Words after which a full stop ends a sentence only if a word follows that starts one."""

_NUMBERED = """
no nos pp fig figs vol vols ch chap sec sect art arts par para eq eqs ref refs op pt pts tab bk
"""
NUMBERED = frozenset(_NUMBERED.split())
"""Words after which a full stop does not end a sentence if a number follows."""

STARTERS = frozenset(listed("sentence-starters").split())
"""Words that, capitalised, start a sentence far more often than they continue a name."""

_GERMAN_MONTHS = """
januar jänner februar märz april mai juni juli august september oktober november dezember
"""
ORDINAL_HEADS = frozenset([*_GERMAN_MONTHS.split(), "jahrhundert", "jahrhunderts"])
"""German words before which a number with a full stop is an ordinal: "Am 22. März"."""

_ENDS = ".!?…‽⁇⁈⁉؟۔।॥։።⸮។៕။།༎"
_FULL_ENDS = "。！？｡"
_CLOSERS = "\"'”’»›)\\]}」』）】》〉］*_~"
_ITEM = r"(?:[-*+•‣▪–—][ \t]|#{1,6}[ \t]|\d{1,3}[.)][ \t])"
_BREAK = re.compile(
    rf"(?<![{_ENDS}])[{_ENDS}]++[{_CLOSERS}]*+(?P<gap>\s++)"
    rf"|(?<![{_FULL_ENDS}])[{_FULL_ENDS}]++[{_CLOSERS}]*+\s*+"
    r"|\n[^\S\n]*+\n\s*+"
    rf"|\n[^\S\n]{{0,12}}(?={_ITEM})"
    r"|^\#{1,6}[ \t][^\n]*+\n\s*+",
    re.MULTILINE,
)
_ITEM_LINE = re.compile(_ITEM)
_NEXT = re.compile(r"[\"'“‘«‹„(\[{*_~¿¡–—-]*+([^\W\d_]++(?!\.)|[^\W\d_]{2,}|\d)?")
_LAST = re.compile(r"(?:[^\W_]+\.)*[^\W_]+\Z")
_DOTTED = re.compile(r"[^\W\d_](?:\.[^\W\d_])+\Z")
_LIST_MARK = re.compile(r"(?:\d{1,3}|[ivxlc]{1,7}|[a-z])\Z", re.IGNORECASE)
_ROMAN = re.compile(r"[IVXLC]+\Z")
_REACH = 40


def sentences(text: str) -> list[tuple[int, int]]:
    """Return `(start, end)` of each sentence; together they are the text.

    White space belongs to the sentence before it, at the start of the text to the first. A blank
    line ends a sentence, as does the line before a list item or a Markdown heading, and a heading
    itself; any other single line break does not. Empty for an empty text; one span for white
    space alone.
    """
    spans: list[tuple[int, int]] = []
    begin, first = 0, len(text) - len(text.lstrip())
    for match in _BREAK.finditer(text, first):
        end = match.end()
        if end < len(text) and _is_end(text, match):
            spans.append((begin, end))
            begin = end
    if text:
        spans.append((begin, len(text)))
    return spans


def _is_end(text: str, match: re.Match[str]) -> bool:
    gap, after = match["gap"], match.end()
    if gap is None or gap.count("\n") > 1:
        return True
    if "\n" in gap and _ITEM_LINE.match(text, after):
        return True
    if text[after] in _ENDS:
        return False
    follow = _NEXT.match(text, after)
    word = (follow[1] or "") if follow else ""
    mark = text[match.start() : match.start("gap")]
    if mark[0] != "." or mark.startswith(".."):
        return not word[:1].islower()
    if word[:1].islower():
        return mark == "." and _is_plain_word(_last(text, match.start()))
    return _full_stop_ends(text, match.start(), word)


def _full_stop_ends(text: str, at: int, word: str) -> bool:
    """Decide on a single full stop at `at`; `word` follows it and is not in lower case."""
    last = _last(text, at)
    plain = last.lower().replace(".", "")
    if plain in HONORIFICS or plain in ("eg", "ie"):
        return False
    if word.lower() in ORDINAL_HEADS and len(last) <= 2 and last.isdecimal():
        return False
    if plain in NUMBERED and (word.isdigit() or (word != "I" and _ROMAN.match(word))):
        return False
    if _LIST_MARK.match(last) and _opens_line(text, at - len(last)):
        return False
    if plain in ABBREVIATIONS or _DOTTED.match(last) or (len(last) == 1 and last.isalpha()):
        return word.lower() in STARTERS
    return True


def _last(text: str, at: int) -> str:
    """Return the word that ends at `at`, inner dots kept, or ""."""
    pieces = text[max(0, at - _REACH) : at].rsplit(None, 1)
    match = _LAST.search(pieces[-1]) if pieces and not text[at - 1].isspace() else None
    return match[0] if match else ""


def _is_plain_word(last: str) -> bool:
    """Whether a full stop after it ends a sentence even if the next word is in lower case."""
    return len(last) > 3 and last.isalpha() and last.islower() and last not in ABBREVIATIONS


def _opens_line(text: str, at: int) -> bool:
    line = text[max(0, at - _REACH) : at].rpartition("\n")
    return not line[2].strip() and (bool(line[1]) or at <= _REACH)


LAST_LINES = 400
"""Maximum number of characters of the lines before a segment."""


def last_lines(text: str) -> str:
    """Return the last sentences of a text, as context of what follows; "" if they are too long."""
    spans = sentences(text)
    end = len(text.rstrip())
    starts = [start for start, _ in spans if end - start <= LAST_LINES]
    return text[min(starts) :].strip() if starts else ""
