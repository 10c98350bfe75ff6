"""BestAnswer: a question and many answers; the asker accepted one of them (Ada-LEval, 3.3)."""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qrmem.errors import UsageError
from qrmem.eval.builders.threads import PER_TAG, PostedAnswer, Threads, dump_in
from qrmem.eval.builders.writing import BuiltSet, case_files, counter_of, lengths_of
from qrmem.eval.registry import builder
from qrmem.types import Tokenizer

LIMITS = {
    1000: 1128,
    2000: 2154,
    4000: 4215,
    6000: 6268,
    8000: 7790,
    12_000: 12_389,
    16_000: 15_964,
    32_000: 32_974,
    64_000: 64_216,
    128_000: 127_059,
}
"""Length to the maximum number of tokens of a case (Table 1); other lengths are their own limit."""
PROMPT, LABEL = 160, 6
"""Tokens reserved for the instructions, and for the name before an answer."""
SIMILAR, LONG = 0.4, 32_000
"""Least share of a question's tags in a similar question; from `LONG` on one tag is enough."""
FILLED = 0.8
"""Least share of the length that distractors must fill."""
_DRAWN = 2000
"""Maximum number of similar questions to draw distractors from."""
_MISSES = 40
"""After this many answers that do not fit, no further one is tried."""


@builder(
    "bestanswer", "BestAnswer: the accepted answer among others (Ada-LEval)", is_repeatable=True
)
def build(
    data: Path,
    out: Path,
    *,
    length: str = "1k",
    seed: int = 0,
    count: int = 0,
    tags: str = "",
    per_tag: int = PER_TAG,
    tokenizer: str = "auto",
) -> BuiltSet:
    """Write `bestanswer_LENGTH.jsonl` for each length, over the same questions.

    The distractors of a length are also in every longer one. Lengths of one call have
    the same questions: those with enough distractors for each length.

    Args:
        data: `Posts.xml` of a Stack Exchange dump, or JSON lines of threads; or a folder with it.
        length: number of tokens of a case: `1k`, or several separated by commas.
        seed: seed of the distractors, their places, and the questions.
        count: maximum number of questions; 0 for all.
        tags: tags of the questions, separated by commas; "" for the 23 most frequent tags.
        per_tag: maximum number of questions per tag; the most viewed are used.
        tokenizer: `auto` is cl100k if its file is on the machine, else the built-in counter.

    Raises:
        UsageError: no case can be made; the message says why.
    """
    counter = counter_of(tokenizer)
    sizes = lengths_of(length)
    short = [name for name, tokens in sizes.items() if tokens < 2 * PROMPT]
    if short:
        raise UsageError(
            f"a length of {short[0]} leaves no room beside the prompt's {PROMPT} tokens"
        )
    if per_tag < 1:
        raise UsageError(f"per_tag must be at least 1, not {per_tag}")
    data = dump_in(data)
    chosen_tags = tuple(filter(None, (tag.strip() for tag in tags.split(","))))
    file = out / "threads.db"
    threads = Threads(file, counter)
    try:
        threads.fill(data, chosen_tags, per_tag)
        counts_written = _write(_QuestionPool(threads, counter, seed), out, sizes, count)
    finally:
        threads.close()
        file.unlink()
    return BuiltSet(counter, [data], counts_written, threads.left_out)


@dataclass(frozen=True, slots=True)
class _Question:
    id: str
    accepted: str
    tags: tuple[str, ...]


class _Replayed:
    """A lazy sequence of answers that can be iterated repeatedly."""

    def __init__(self, *sources: Iterable[PostedAnswer]) -> None:
        self._known: list[PostedAnswer] = []
        self._left = chain(*sources)

    def __iter__(self) -> Iterator[PostedAnswer]:
        yield from self._known
        for answer in self._left:
            self._known.append(answer)
            yield answer


class _QuestionPool:
    """The questions, and which of them are similar."""

    def __init__(self, threads: Threads, counter: Tokenizer, seed: int) -> None:
        self.seed = seed
        self.threads = threads
        self.left_out = threads.left_out
        self.questions = [_Question(*row) for row in threads.questions()]
        self._counter = counter
        tagged: dict[str, list[int]] = {}
        for n, question in enumerate(self.questions):
            for tag in question.tags:
                tagged.setdefault(tag, []).append(n)
        self._tagged: Mapping[str, NDArray[np.int64]] = {
            tag: np.array(rows) for tag, rows in tagged.items()
        }

    def own(self, question: _Question) -> tuple[PostedAnswer, list[PostedAnswer]] | None:
        """Return the accepted answer and earlier ones; `None` if the question gives no case."""
        answers = self.threads.answers(question.id)
        place = next((n for n, one in enumerate(answers) if one.id == question.accepted), None)
        if place is None:
            self.left_out["questions whose accepted answer is missing"] += 1
        elif not answers[place].is_text:
            self.left_out["questions whose accepted answer is more than text"] += 1
        else:
            return answers[place], [one for one in answers[:place] if one.text]
        return None

    def others(self, n: int, *, is_near: bool) -> Iterator[PostedAnswer]:
        """Yield answers to other questions: to similar ones, or to those that share a tag."""
        question = self.questions[n]
        tagged_rows = [self._tagged[tag] for tag in question.tags]
        if not tagged_rows:
            return
        shared = np.bincount(np.concatenate(tagged_rows), minlength=len(self.questions))
        shared[n] = 0
        is_similar = shared >= max(SIMILAR * len(question.tags), 1)
        other_places = np.flatnonzero(
            is_similar if is_near else (shared > 0) & ~is_similar
        ).tolist()
        rng = random.Random(f"{self.seed}:{question.id}:{is_near}")
        for other in rng.sample(other_places, min(len(other_places), _DRAWN)):
            yield from (a for a in self.threads.answers(self.questions[other].id) if a.text)

    def size(self, text: str) -> int:
        """Return the tokens of a case without answers."""
        return PROMPT + self._counter.count(text)


def _write(
    pool: _QuestionPool, out: Path, wanted: Mapping[str, int], count: int
) -> list[dict[str, Any]]:
    """Write the cases of all lengths; a question without enough answers for one is in none."""
    places = list(range(len(pool.questions)))
    if count:
        random.Random(f"{pool.seed}:questions").shuffle(places)
    count_kept = 0
    with case_files(out, "bestanswer", wanted) as files:
        for n in places:
            cases = _cases(pool, n, wanted)
            for name, case in cases.items():
                files[name].add(case)
            count_kept += bool(cases)
            if count and count_kept == count:
                break
    if not count_kept:
        reasons_in_words = ", ".join(
            f"{count} {reason}" for reason, count in pool.left_out.most_common()
        )
        raise UsageError(
            f"no case of {', '.join(wanted)} can be made: {reasons_in_words}; "
            "give more threads, or other lengths"
        )
    return [file.about for file in files.values()]


def _cases(pool: _QuestionPool, n: int, wanted: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """Return the cases of a question by length, or none if one of them cannot be filled.

    Answers are chosen for the paper's lengths in ascending order, and each length keeps those of
    the one before. So a length has the same distractors, whichever lengths are built.
    """
    question = pool.questions[n]
    own_answers = pool.own(question)
    if own_answers is None:
        return {}
    accepted, earlier = own_answers
    near_others = _Replayed(earlier, pool.others(n, is_near=True))
    every = _Replayed(near_others, pool.others(n, is_near=False))
    text = pool.threads.text(question.id)
    base = pool.size(text) + accepted.tokens + LABEL
    names = {tokens: name for name, tokens in wanted.items()}
    longest = max(names)
    answers_chosen: dict[str, PostedAnswer] = {}
    cases = {}
    for size in sorted({*(size for size in LIMITS if size <= longest), *names}):
        limit = LIMITS.get(size, size)
        filled = _filled(
            every if size >= LONG else near_others, answers_chosen, limit - base, accepted
        )
        tokens = base + _tokens(filled.values())
        if size in LIMITS:
            answers_chosen = filled
        if size in names:
            if not filled or tokens > limit or tokens < FILLED * size:
                reason = "longer than" if tokens > limit else "with too few answers for"
                pool.left_out[f"questions {reason} {names[size]}"] += 1
                return {}
            options = [accepted, *filled.values()]
            random.Random(f"{pool.seed}:{question.id}:{size}").shuffle(options)
            cases[names[size]] = {
                "question_id": question.id,
                "question": text,
                "all_answers": [option.text for option in options],
                "answer": f"A{1 + options.index(accepted)}",
                "tags": list(question.tags),
                "tokens": tokens,
            }
    return cases


def _filled(
    candidates: Iterable[PostedAnswer],
    chosen: Mapping[str, PostedAnswer],
    room: int,
    accepted: PostedAnswer,
) -> dict[str, PostedAnswer]:
    """Return the chosen answers, then further ones that fit, in order; equal texts once."""
    answers_taken = dict(chosen)
    texts = {accepted.text, *(answer.text for answer in answers_taken.values())}
    tokens_left, misses = room - _tokens(answers_taken.values()), 0
    for answer in candidates:
        if answer.text in texts:
            continue
        if answer.tokens + LABEL <= tokens_left:
            answers_taken[answer.id] = answer
            texts.add(answer.text)
            tokens_left -= answer.tokens + LABEL
        else:
            misses += 1
            if misses == _MISSES:
                break
    return answers_taken


def _tokens(answers: Iterable[PostedAnswer]) -> int:
    return sum(answer.tokens + LABEL for answer in answers)
