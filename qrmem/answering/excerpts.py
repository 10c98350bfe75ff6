"""Excerpts of passages that answer a question without a chat model.

Nothing is composed: an excerpt is a run of whole sentences of one segment, word for word.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from rapidfuzz import fuzz

from qrmem.answering.evidence import WORD, Clue, Evidence, Line, Query, content, lines, query
from qrmem.extraction import vocabulary as voc
from qrmem.retrieval.definitions import defines, identifiers
from qrmem.text.boilerplate import boilerplate
from qrmem.text.code.languages import language_of
from qrmem.types import AskContext, Hit, Passage, Quote, Segment, Verdict

# The answer without a chat model: the parts of passages that are closest to a question.
#
# Nothing is composed: an excerpt is a run of whole sentences of one segment, word for word.

MOST, WORDS, ALL_WORDS, CODE_LINES = 3, 50, 150, 8
"""Excerpts at most, the words that one is filled up to, the words of all of them together, and the
lines of code that a search shows."""

SAME_PASSAGE = 0.25
"""Amount by which each excerpt of a passage lowers the score of its other sentences."""

ENOUGH, NAMES, WITHOUT_KIND = 0.5, 0.15, 0.1
"""Coverage by the best sentence from which a search need not go on; what the question's names that
it covers add, and what is taken off where it cannot say who, when, where or how much."""

NO_MODEL = "no chat model is set: closest passages"
SCANT = 1 / 3
"""Share of a question's words up to which the passage that holds most of them looks like a miss:
none of 59 questions about the text at hand, half of those about another one."""
_ALIKE = 85
"""Minimum similarity (0-100) of a word in the text that counts as another spelling of a name."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A run of sentences of a segment.

    Attributes:
        start: offset of its first character in the segment's text.
        matches: spans of the question's words in the excerpt, in order.
    """

    segment: Segment
    start: int
    end: int
    matches: tuple[tuple[int, int], ...]

    @property
    def text(self) -> str:
        """The text of the excerpt, exactly as in the segment."""
        return self.segment.text[self.start : self.end]


def scant(question: str, texts: Iterable[str]) -> str:
    """Return a note if no passage has some words, or each one lacks most words; else ""."""
    words = query(question).words
    found = [words.keys() & set(content(text)) for text in texts]
    most = max(map(len, found), default=0)
    if len(words) < 2:
        return ""
    if most > SCANT * len(words):
        absent = [word for term, word in words.items() if not any(term in own for own in found)]
        return f"no passage mentions {_list_in_words(absent)}" if absent else ""
    share = f"more than {most}" if most else "any"
    return f"no passage holds {share} of the question's {len(words)} words: this may be a miss"


def with_excerpts(question: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return hits with the best matching part of each text, and its matches.

    The part has at most 50 words in whole sentences, or 8 lines of code. If nothing matches, it is
    the beginning.
    """
    segments = [Segment(hit.segment_id, hit.document_id, 0, 0, 0, hit.text, 0) for hit in hits]
    passages = [
        Passage(str(n), one, title=hit.title)
        for n, (one, hit) in enumerate(zip(segments, hits, strict=True))
    ]
    evidence = Evidence(query(question), passages)
    clues: dict[str, list[Clue]] = {}
    for clue in evidence.clues:
        clues.setdefault(clue.passage.label, []).append(clue)
    passages_shown = []
    for n, (segment, hit) in enumerate(zip(segments, hits, strict=True)):
        language = language_of(hit.title)
        passage_clues = clues.get(str(n), [])
        if passage_clues and not language:
            best_part = _best_part(evidence.asked, segment, passage_clues)
            passages_shown.append(replace(hit, excerpt=best_part.text, matches=best_part.matches))
            continue
        start, end = _code_lines(evidence, hit.text, language) if language else (0, len(hit.text))
        text = hit.text[start:end]
        passages_shown.append(replace(hit, excerpt=text, matches=matches(question, text)))
    return passages_shown


def _best_part(asked: Query, segment: Segment, clues: Sequence[Clue]) -> Excerpt:
    """Return the best sentence of a segment that is no heading, with its neighbours."""
    no_heading = [clue for clue in clues if not clue.line.is_heading] or clues
    best = max(no_heading, key=lambda clue: (round(clue.score, 9), -clue.order))
    own, scores = [clue.line for clue in clues], [clue.score for clue in clues]
    first, last = _grow(own, scores, best.at, (), WORDS)
    return _excerpt(asked, segment, first, last, WORDS)


def _weight(evidence: Evidence, found: Collection[str]) -> float:
    return sum(evidence.rarity(term) for term in sorted(found))


def _code_lines(evidence: Evidence, text: str, language: str) -> tuple[int, int]:
    """Return the span of the lines with most of a question's words, or a definition it names."""
    rows = text.splitlines(keepends=True)
    names = identifiers(evidence.asked.text)
    defined = [any(defines(row, name, language) for name in names) for row in rows]
    if any(defined):
        first = defined.index(True)
    else:
        row_terms = [set(content(row)) & evidence.asked.terms for row in rows]
        windows = [row_terms[n : n + CODE_LINES] for n in range(len(rows))]
        worth = [_weight(evidence, set().union(*one)) for one in windows]
        worth = [
            w + max(_weight(evidence, o) for o in n) for w, n in zip(worth, windows, strict=True)
        ]
        best = [n for n, one in enumerate(worth) if one == max(worth)]
        first = _opened_by(rows, best[len(best) // 2]) if best else 0
    start = sum(map(len, rows[:first]))
    return start, start + len("".join(rows[first : first + CODE_LINES]).rstrip())


def _opened_by(rows: Sequence[str], at: int) -> int:
    """Return the line that opens the block of a line, if it is among the lines before."""
    depth = _indent(rows[at])
    for n in range(at - 1, max(-1, at - CODE_LINES // 2), -1):
        if rows[n].strip() and _indent(rows[n]) < depth:
            return n
    return at


def _indent(row: str) -> int:
    return len(row) - len(row.lstrip())


def matches(question: str, text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of a text's words that are in a question, in any form."""
    query_terms = query(question).terms
    return tuple(
        m.span() for m in WORD.finditer(text) if not query_terms.isdisjoint(_of_word(m[0]))
    )


@lru_cache(maxsize=10_000)
def _of_word(word: str) -> list[str]:
    """Return the terms of one word; cached, because texts repeat words."""
    return content(word)


def judge(context: AskContext, passages: Sequence[Passage], *, force: bool, tokens: int) -> Verdict:
    """Return the closest passages as a verdict, or what is missing.

    Args:
        force: answer with the best passages, however little of the question they cover.
    """
    evidence = Evidence(query(context.question), _readable(passages))
    excerpts_chosen = _choose_excerpts(evidence)
    if not excerpts_chosen or not (force or is_enough(evidence, excerpts_chosen[0][0])):
        best = excerpts_chosen[0][0] if excerpts_chosen else None
        return Verdict(False, reason=_what_is_missing(evidence, best), tokens=tokens)
    excerpts_shown = [(clue.passage, excerpt) for clue, excerpt in excerpts_chosen]
    excerpts_shown = _newest_first(
        [*_newer(context.question, excerpts_shown, passages), *excerpts_shown][:MOST]
    )
    quotes = tuple(Quote(p.label, excerpt.text, excerpt.matches) for p, excerpt in excerpts_shown)
    text = "\n\n".join(_excerpt_line(p, excerpt) for p, excerpt in excerpts_shown)
    miss = scant(context.question, (f"{p.title} {p.segment.text}" for p in passages))
    reason = f"{NO_MODEL}; {miss}" if miss else NO_MODEL
    return Verdict(True, text, None, reason, quotes, tokens, status="passages")


def _newer(
    question: str, shown: Sequence[tuple[Passage, Excerpt]], passages: Sequence[Passage]
) -> list[tuple[Passage, Excerpt]]:
    """Return the beginnings of turns that correct the shown ones, newest first."""
    by_label = {passage.label: passage for passage in passages}
    labels_shown = {passage.label for passage, _ in shown}
    newer_labels = dict.fromkeys(
        label for p, _ in shown for label in p.superseded_by if label not in labels_shown
    )
    newer = []
    for passage in (by_label[label] for label in reversed(newer_labels) if label in by_label):
        text = passage.segment.text
        last = [match.end() for match in re.finditer(r"\S+", text)][:WORDS][-1:]
        end = last[0] if last else len(text)
        excerpt = Excerpt(passage.segment, 0, end, matches(question, text[:end]))
        newer.append((passage, excerpt))
    return newer


def _newest_first(shown: Sequence[tuple[Passage, Excerpt]]) -> list[tuple[Passage, Excerpt]]:
    """Return excerpts in their order, but each corrected turn after the turn that corrects it."""
    remaining, ordered = list(shown), list[tuple[Passage, Excerpt]]()
    while remaining:
        waiting = {passage.label for passage, _ in remaining}
        ready = [one for one in remaining if waiting.isdisjoint(one[0].superseded_by)]
        ordered.append((ready or remaining)[0])
        remaining.remove(ordered[-1])
    return ordered


def _excerpt_line(passage: Passage, excerpt: Excerpt) -> str:
    text = " ".join(excerpt.text.split())
    if passage.ended:
        text = f"(no longer: {'; '.join(passage.ended)}) {text}"
    return f"(corrected later) {text}" if passage.superseded_by else text


def is_enough(evidence: Evidence, clue: Clue) -> bool:
    """Whether a sentence covers enough of the question to stop the search."""
    names = evidence.asked.name_terms
    names_covered = len(names & clue.line.terms) / len(names) if names else 1.0
    lacks_kind = bool(evidence.asked.kind) and not clue.has_kind
    return clue.coverage + NAMES * (names_covered - 1) - WITHOUT_KIND * lacks_kind >= ENOUGH


def absent_names(question: str, texts: Sequence[str]) -> list[str]:
    """Return the names of a question that texts do not have as names, in any spelling.

    Titles ("Captain") and abbreviations do not count. "Maastrich" is found in "Maastricht".
    """
    names_asked = [(name, _telling(_unopened(name, question))) for name in query(question).names]
    if not any(words for _, words in names_asked):
        return []
    whole = " ".join(" ".join(texts).casefold().split())
    names_asked = [
        (name, words) for name, words in names_asked if words and name.casefold() not in whole
    ]
    capitals = {word for text in texts for word in WORD.findall(text) if not word.islower()}
    stems = {term for word in capitals for term in content(word)}
    return [name for name, words in names_asked if not _occurs(words, capitals, stems)]


def _unopened(name: str, question: str) -> str:
    """Return a name without its first word if the question begins with it ("Где Вронский …?")."""
    first, _, rest = name.partition(" ")
    return rest if rest and question.lstrip("¿¡ ").startswith(first) else name


def _telling(name: str) -> list[str]:
    words = [word.removesuffix("'s").removesuffix("’s") for word in WORD.findall(name)]
    return [
        word
        for word in words
        if len(word) > 2
        and not word.islower()
        and not (word.isupper() and len(word) < 5)
        and voc.bare(word) not in voc.TITLES | voc.FUNCTION_WORDS
    ]


def _occurs(words: Sequence[str], capitals: Collection[str], stems: Collection[str]) -> bool:
    """Whether a text has every word of a name, or a name with similar spelling."""
    return all(
        any(term in stems for term in content(word))
        or any(fuzz.ratio(word.casefold(), other.casefold()) >= _ALIKE for other in capitals)
        for word in words
    )


def _readable(passages: Sequence[Passage]) -> Sequence[Passage]:
    """Return the passages that are not boilerplate; all passages if all are."""
    return [p for p in passages if not boilerplate(p.segment.text, p.segment.index)] or passages


def _choose_excerpts(evidence: Evidence) -> list[tuple[Clue, Excerpt]]:
    """Choose the best sentence with its neighbours, then the best of the rest, and so on."""
    ranked = [clue for clue in evidence.ranked() if not clue.line.is_heading]
    scores: dict[str, list[float]] = {}
    for clue in evidence.clues:
        scores.setdefault(clue.passage.label, []).append(clue.score)
    excerpts: list[tuple[Clue, Excerpt]] = []
    words_left = ALL_WORDS
    while ranked and len(excerpts) < MOST:
        best = max(ranked, key=lambda c: c.score - SAME_PASSAGE * _times(c, excerpts))
        ranked.remove(best)
        segment = best.passage.segment
        if language := language_of(best.passage.title):
            start, end = _code_lines(evidence, segment.text, language)
            if _is_shown(segment, start, end, excerpts):
                continue
            match_spans = matches(evidence.asked.text, segment.text[start:end])
            excerpt = Excerpt(segment, start, end, match_spans)
        else:
            segment_lines = lines(segment.text)
            lines_used = [
                n
                for n, one in enumerate(segment_lines)
                if _is_shown(segment, one.start, one.end, excerpts)
            ]
            words = words_left if len(excerpts) == MOST - 1 else min(words_left, WORDS)
            first, last = _grow(
                segment_lines, scores[best.passage.label], best.at, lines_used, words
            )
            excerpt = _excerpt(evidence.asked, segment, first, last, words_left)
        excerpts.append((best, excerpt))
        words_left -= len(excerpt.text.split())
        ranked = [c for c in ranked if len(c.line.text.split()) <= words_left]
        ranked = [
            c
            for c in ranked
            if not _is_shown(c.passage.segment, c.line.start, c.line.end, excerpts[-1:])
        ]
    return excerpts


def _is_shown(
    segment: Segment, start: int, end: int, chosen: Sequence[tuple[Clue, Excerpt]]
) -> bool:
    """Whether an excerpt has some of these characters; code segments overlap."""
    at = segment.start
    return any(
        one.segment.document_id == segment.document_id
        and one.segment.start + one.start < at + end
        and at + start < one.segment.start + one.end
        for _, one in chosen
    )


def _times(clue: Clue, chosen: Sequence[tuple[Clue, Excerpt]]) -> int:
    return sum(clue.passage.label == other.passage.label for other, _ in chosen)


def _grow(
    own: Sequence[Line], scores: Sequence[float], at: int, used: Collection[int], words: int
) -> tuple[int, int]:
    """Return the first and last sentence around one that fit; better neighbours are added first."""
    first = last = at
    words_left = words - len(own[at].text.split())
    while True:
        beside = [n for n in (first - 1, last + 1) if 0 <= n < len(own) and n not in used]
        beside = [n for n in beside if len(own[n].text.split()) <= words_left]
        if not beside:
            return first, last
        best = max(beside, key=lambda n: (scores[n], n))
        first, last = min(first, best), max(last, best)
        words_left -= len(own[best].text.split())


def _excerpt(asked: Query, segment: Segment, first: int, last: int, words: int) -> Excerpt:
    """Return sentences as an excerpt; a single long sentence is cut around its matches."""
    segment_lines = lines(segment.text)
    start, end = segment_lines[first].start, segment_lines[last].end
    text = segment.text[start:end]
    if len(text.split()) > words:
        spans = [match.span() for match in re.finditer(r"\S+", text)]
        holds_terms = [not asked.terms.isdisjoint(content(text[a:b])) for a, b in spans]
        counts = [sum(holds_terms[n : n + words]) for n in range(len(spans) - words + 1)]
        best = [n for n, count in enumerate(counts) if count == max(counts)]
        first_word = best[len(best) // 2]
        end = start + spans[first_word + words - 1][1]
        start += spans[first_word][0]
    return Excerpt(segment, start, end, matches(asked.text, segment.text[start:end]))


def _what_is_missing(evidence: Evidence, best: Clue | None) -> str:
    """Return what is missing, in words; the strategies continue with them."""
    question = evidence.asked
    missing = list(dict.fromkeys(evidence.missing()))
    if missing:
        return f"nothing read so far mentions {_list_in_words(missing)}"
    if best is None:
        return "no sentence is about the question"
    words_found = [word for term, word in question.words.items() if term in best.line.terms]
    words_missing = [word for word in question.words.values() if word not in words_found]
    if words_missing and words_found:
        return f"{_list_in_words(words_missing)} not found beside {_list_in_words(words_found)}"
    return "no sentence covers enough of the question"


def _list_in_words(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in dict.fromkeys(words))
