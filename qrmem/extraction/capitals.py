"""Names by capital letters: one pass over a segment, without data of other segments.

A capital letter within a sentence is evidence of a name. A capital letter where every word has one
(at the start of a sentence, in a quotation, a heading or a line of verse) is no evidence; such a
word is a name only if another place in the segment, or its context, shows it.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from qrmem.extraction import vocabulary as voc
from qrmem.text.boilerplate import is_said
from qrmem.text.spelling import INVISIBLE, MARKS

_U = voc.UPPER
_M = rf"(?:[{MARKS}{INVISIBLE}]+[^\W_]*)*"
"""Combining marks within a word in NFD form, and invisible signs."""
_ABBREVIATED = "|".join(sorted(voc.ABBREVIATED_TITLES, key=len, reverse=True))
_TOKEN = re.compile(
    rf"(?<![^\W_])(?:(?:{_ABBREVIATED})\.(?!\w)"
    rf"|(?:[{_U}]\.)(?:[ ]?[{_U}]\.)+(?![\w])"
    rf"|[{_U}]\.(?=[ \n][{_U}])"
    rf"|[{_U}][^\W_]*{_M}(?:[’'][^\W\d_]+{_M})*(?:-[^\W_]+{_M}(?:[’'][^\W\d_]+{_M})*)*"
    rf"(?:[ \n]?&[ \n]?[{_U}][^\W_]*{_M})*)"
)
_WORD = re.compile(rf"[^\W\d_]+(?:[{MARKS}]+[^\W\d_]*)*")
_ENDING = re.compile(
    r"[’'](?:[sS]|d|ll|ve|re|m|t)?\Z"
    r"|(?<=\w\w\w)[’'](?:n?[dt][ae](?:n|ki)?|[ny]?[ıiuü]n|[ny][ıiuüae]|y?l[ae]|[dt][ıiuü]r|l[ıiuü])\Z"
)
"""A possessive, a contraction, or a Turkish suffix of a name: `İzmir'de`."""
_ELIDED = re.compile(
    rf"(?:[CDJLMNS]|Qu|Jusqu|Lorsqu|Puisqu|Un|[DN]ell|[DS]?[AaUu]ll)[’'](?=[^\W\d_][\w{MARKS}])"
)
"""French and Italian elided words; before a lower-case letter they do not begin a name."""
_CONNECTOR = re.compile(r"[ \n](?:(of(?:[ \n]the)?)|(and)|([a-z]{1,3}(?:[ \n][a-z]{2,3})?))[ \n]\Z")
_NUMBER_AFTER = re.compile(
    r"[ ](\d{1,3})(?![\w%]|[.,:]\d|\.?\s(?:de\s)?[^\W\d_]+\s(?:de\s)?\d{4})(?:[ \n]([a-z]+))?"
)
"""A number that is neither a day of a month nor a year."""
_BEFORE = frozenset(".!?¿¡…:;—–*#>|([{\"“”«„‘'•·_")
_GAPS = frozenset((" ", "\n", "\u00a0", "  ", "-", " \n", "\r\n"))
_ACRONYMS = frozenset({"US", "IT", "WHO"})
_LATIN = re.compile("[A-Za-zÀ-ɏ]")
_LONE_INITIAL = re.compile(r"[^\W\d_]\.")
_VERSE_LINES = 4
_NO_HEADING_ENDS = frozenset(".,;:!?”\"'")


@dataclass(slots=True)
class CapitalRun:
    """One or more adjacent capitalised words that form a name.

    Attributes:
        words: the words without endings ('s).
        weak: whether it is in a place where every word has a capital letter.
        possessive: whether an ending was removed from the last word.
    """

    start: int
    end: int
    words: list[str]
    weak: bool
    possessive: bool


def vocabulary_of(text: str) -> Counter[str]:
    """Return the number of occurrences of each word of a text, case-sensitive."""
    return Counter(_WORD.findall(text))


def runs(text: str, taken: list[tuple[int, int]], words: Counter[str]) -> list[CapitalRun]:
    """Return the names of a segment in order, none overlapping a span in `taken`.

    Args:
        text: the segment.
        taken: sorted spans of other entities (dates, quoted titles).
        words: the segment's words, from `vocabulary_of`.
    """
    trimmed_runs = [r for r in map(_trimmed, _joined(text, _tokens(text, taken))) if r.words]
    alone = {tuple(run.words) for run in trimmed_runs}
    for run in trimmed_runs:
        _drop_adjective(run, words)
        _drop_opener(run, alone)
    return _accepted(text, [r for r in trimmed_runs if r.words], words)


def _tokens(text: str, taken: list[tuple[int, int]]) -> list[CapitalRun]:
    """Return the capitalised words with their places; all words of a heading are weak."""
    weak_lines = _weak_lines(text)
    tokens, line, spans = [], 0, iter([*taken, (len(text), len(text))])
    skip = next(spans)
    for match in _TOKEN.finditer(text):
        start, word = match.start(), match.group()
        while skip[1] <= start and skip[0] < len(text):
            skip = next(spans)
        if skip[0] < match.end() and start < skip[1]:
            continue
        while line < len(weak_lines) and weak_lines[line][1] <= start:
            line += 1
        in_heading = line < len(weak_lines) and weak_lines[line][0] <= start
        ending = _ENDING.search(word)
        base = word[: ending.start()] if ending else word
        weak = in_heading or _opens(text, start)
        tokens.append(CapitalRun(start, start + len(base), [base], weak, bool(ending)))
    return tokens


def _opens(text: str, start: int) -> bool:
    """Return whether any word would have a capital at this place."""
    at = start - 1
    while at >= 0 and text[at].isspace():
        at -= 1
    if at < 0 or text[at] in _BEFORE:
        return True
    return text.find("\n\n", at, start) >= 0


def _weak_lines(text: str) -> list[tuple[int, int]]:
    """Return spans where capitals are no evidence: headings, shouted lines, starts of verses."""
    spans, at, opening = [], 0, []
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if _is_heading(line, lines, number):
            spans.append((at, at + len(line)))
        elif line[:1].strip():
            opening.append((at, line[0].isupper()))
        at += len(line) + 1
    capitals = sum(is_capital for _, is_capital in opening)
    is_verse = len(opening) >= _VERSE_LINES and capitals >= 0.9 * len(opening)
    if is_verse and len(text) < 90 * len(opening):
        spans.extend((start, start + 1) for start, _ in opening)
    return sorted(spans)


def _is_heading(line: str, lines: list[str], number: int) -> bool:
    """Return whether a line is a heading: marked, or short, alone and with capitalised words."""
    if line.startswith("#"):
        return True
    alone = (number == 0 or not lines[number - 1].strip()) and (
        number + 1 >= len(lines) or not lines[number + 1].strip()
    )
    if not alone or not line or len(line) > 90 or is_said(line):
        return False
    if line.rstrip()[-1:] in _NO_HEADING_ENDS and not line.isupper():
        return False
    words = _WORD.findall(line)
    content = [word for word in words if word.casefold() not in voc.FUNCTION_WORDS]
    return bool(content) and len(words) <= 12 and not any(word.islower() for word in content)


def _joined(text: str, tokens: list[CapitalRun]) -> Iterator[CapitalRun]:
    """Join adjacent tokens."""
    run: CapitalRun | None = None
    for token in tokens:
        if not _is_name_word(token):
            if run:
                yield run
            run = None
            continue
        if run and _continues(text, run, token):
            run.words += [*_between(text, run, token), *token.words]
            run.end, run.possessive = token.end, token.possessive
            continue
        if run:
            yield run
        run = token
    if run:
        yield run


def _is_name_word(token: CapitalRun) -> bool:
    word = token.words[0]
    if len(word) == 1 and (token.possessive or word in "IAO"):
        return False
    elided = _ELIDED.match(word) if token.weak else None
    if elided and word[elided.end()].islower():
        return False
    low = voc.bare(word)
    if low in voc.FUNCTION_WORDS and (word not in _ACRONYMS or token.weak):
        return False
    return low.partition("-")[0] not in voc.FUNCTION_WORDS or "-" not in low


def _between(text: str, run: CapitalRun, token: CapitalRun) -> list[str]:
    gap = text[run.end : token.start]
    return gap.lstrip("’'sS").split() if run.possessive else gap.split()


def _continues(text: str, run: CapitalRun, token: CapitalRun) -> bool:
    gap = text[run.end : token.start]
    head = voc.bare(token.words[0])
    if run.possessive:
        rest = gap.lstrip("’'sS")
        return rest in _GAPS and (head in voc.BUILDING_HEADS or head in voc.PLACE_HEADS)
    if gap in _GAPS:
        return voc.bare(run.words[-1]) not in _DAYS_AND_MONTHS
    if gap == ", " and token.words[0] in {"Jr", "Jr.", "Sr", "Sr.", "Inc", "Ltd"}:
        return True
    return len(gap) < 12 and _connects(gap, run, token)


def _connects(gap: str, run: CapitalRun, token: CapitalRun) -> bool:
    match = _CONNECTOR.match(gap)
    if not match:
        return False
    of, conjunction, particle = match.groups()
    if of:
        return voc.bare(run.words[-1]) in voc.OF_HEADS
    if conjunction:
        return voc.bare(token.words[0]) in voc.PARTNER_WORDS
    return all(word in voc.PARTICLES for word in particle.split())


def _trimmed(run: CapitalRun) -> CapitalRun:
    """Remove words at either end that do not belong to the name."""
    if len(run.words) > 1 and _LONE_INITIAL.fullmatch(run.words[-1]):
        run.words[-1] = run.words[-1][:-1]
        run.end -= 1
    while run.words and _is_noise(run.words[0]) and len(run.words) > 1:
        _cut_first(run)
    if len(run.words) == 1 and (_is_noise(run.words[0]) or voc.bare(run.words[0]) in voc.TITLES):
        run.words = []
    return run


def _is_noise(word: str) -> bool:
    low = voc.bare(word)
    return (
        low in voc.WEEKDAYS or low in voc.MONTHS or low in voc.SEASONS or low in voc.SECTION_WORDS
    )


def _cut_first(run: CapitalRun) -> None:
    """Drop the first word; the next word is then within the sentence."""
    run.start += len(run.words.pop(0))
    run.weak = False


def _drop_adjective(run: CapitalRun, words: Counter[str]) -> None:
    """Drop an ordinary word with a capital only by its place ("Poor Ellen", "Seeing Darcy")."""
    while run.weak and len(run.words) > 1:
        low = voc.bare(run.words[0])
        is_title = low in voc.TITLES and not (low in voc.BARE_OPENERS and words[low])
        ordinary = low in voc.BARE_OPENERS or words[low] or low.endswith(("ing", "ly"))
        if is_title or not ordinary:
            return
        _cut_first(run)


def _drop_opener(run: CapitalRun, alone: set[tuple[str, ...]]) -> None:
    """Drop a first word in a script without a list of ordinary words, if the rest is a name.

    A single letter there is an article; a longer word is dropped if the rest occurs elsewhere.
    """
    if not run.weak or len(run.words) < 2 or _LATIN.match(run.words[0]):
        return
    if len(run.words[0]) == 1 or tuple(run.words[1:]) in alone:
        _cut_first(run)


def _accepted(text: str, found: list[CapitalRun], words: Counter[str]) -> list[CapitalRun]:
    """Keep the runs with evidence; weak ones need another occurrence in the segment."""
    strong_words = Counter(
        word.casefold() for run in found if not run.weak or _has_title(run) for word in run.words
    )
    runs_kept = []
    for run in found:
        run.start = _start_of(text, run)
        if _is_kept(text, run, strong_words, words):
            _take_number(text, run)
            runs_kept.append(run)
    return runs_kept


def _take_number(text: str, run: CapitalRun) -> None:
    """Add a number that is part of the name ("Apollo 11"), not one that counts the next word."""
    match = _NUMBER_AFTER.match(text, run.end) if not run.possessive else None
    if match and not (match[2] and (match[2] in voc.UNITS or voc.PLURAL_OR_UNIT.match(match[2]))):
        run.words.append(match[1])
        run.end = match.end(1)


def _has_title(run: CapitalRun) -> bool:
    return len(run.words) > 1 and voc.bare(run.words[0]) in voc.TITLES


def _start_of(text: str, run: CapitalRun) -> int:
    """Return the start of the first remaining word."""
    at = text.find(run.words[0], run.start, run.end)
    return at if at >= 0 else run.start


def _is_kept(text: str, run: CapitalRun, seen: Counter[str], words: Counter[str]) -> bool:
    low = [word.casefold() for word in run.words]
    if (
        all(w in voc.BARE_OPENERS or w in voc.FUNCTION_WORDS for w in low)
        and len(low) == 1
        and run.weak
    ):
        return False
    if run.words[0].isupper() and len(run.words[0]) > 1:
        return _is_acronym(text, run, seen, words)
    if len(low) == 1 and len(low[0]) == 1:
        return False
    if len(run.words) > 1:
        return not run.weak or _has_title(run) or any(w in seen or not words[w] for w in low)
    if not run.weak:
        return words[low[0]] <= seen[low[0]] and low[0] not in _COMMON_CAPITALS
    return seen[low[0]] > words[low[0]] or (not words[low[0]] and _acts_as_name(text, run))


_DAYS_AND_MONTHS = voc.WEEKDAYS | voc.MONTHS
_COMMON_CAPITALS = voc.BARE_OPENERS | voc.TITLES


def _is_acronym(text: str, run: CapitalRun, seen: Counter[str], words: Counter[str]) -> bool:
    """Return whether a word is an acronym: short and in capitals, unlike its neighbours."""
    if len(run.words) > 1:
        if all(w.isupper() for w in run.words):
            seen_plain = (w.title() for w in run.words if voc.bare(w) not in voc.FUNCTION_WORDS)
            return any(words[w] for w in seen_plain)
        return True
    word = run.words[0]
    if words[word.casefold()] or _ROMAN.fullmatch(word):
        return False
    return not run.weak or words[word.title()] > 0 or bool(_LOWER_NEXT.match(text, run.end))


_LOWER_NEXT = re.compile(r"(?:[’']s)?[ \n][a-z]")
_ROMAN = re.compile(r"[IVXLC]+\.?")
_NEXT_WORD = re.compile(r"[ \n](?:and [^\W\d_]|([a-z]+(?:n['’]t)?))(?![\w’'])")
_OF_ANY = frozenset("had was has is did could would will does who".split())  # noqa: SIM905
_VERBS_OF_NAMES = _OF_ANY | voc.FINITE_VERBS | voc.PERSON_VERBS | voc.DOES
_NOT_NAMES = re.compile(r".*(?:ing|ly|ed|ness|ment|tion|sion|ity|ism|ance|ence|ful|less|ous|s)\Z")


def _acts_as_name(text: str, run: CapitalRun) -> bool:
    """Return whether a weak word acts like a name: as the subject of a verb, or as an owner."""
    low = voc.bare(run.words[0])
    if len(low) < 2 or low in _COMMON_CAPITALS or low in voc.FUNCTION_WORDS:
        return False
    if run.possessive and text[run.end + 1 : run.end + 2] in ("s", "S"):
        return True
    following = None if _NOT_NAMES.match(low) else _NEXT_WORD.match(text, run.end)
    verb = (following[1] or "and") if following else ""
    return verb in _VERBS_OF_NAMES or verb.endswith("ed") or verb == "and"
