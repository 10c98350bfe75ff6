"""Numbers in names (digits, Roman numerals, ordinals, English number words), and counts."""

import re
from collections.abc import Sequence

_UNITS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
"""
_ORDINALS = """
zeroth first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth
thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
WORDS = (
    {word: str(n) for n, word in enumerate(_UNITS.split())}
    | {word: str(n) for n, word in enumerate(_ORDINALS.split())}
    | {word: str(10 * n) for n, word in enumerate(_TENS.split(), 2)}
    | {word[:-1] + "ieth": str(10 * n) for n, word in enumerate(_TENS.split(), 2)}
    | {"hundred": "100", "hundredth": "100", "thousand": "1000", "thousandth": "1000"}
    | {"million": "1000000", "billion": "1000000000", "dozen": "12"}
)
"""Number words and ordinals, lower case, to digits."""

_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)\Z")
_DIGITS = re.compile(r"^-?\d+(?:\.\d+)*|\d+(?:\.\d+)*")
_REGNAL = re.compile(r"(?=.)x{0,3}(?:ix|iv|v?i{0,3})\Z")
_ROMAN = re.compile(r"(?=.)m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})\Z")
_VALUES = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "d": 500, "m": 1000}
_AFTER_REGNAL = {"of", "and", "the", "in", "at"}


def numbers(words: Sequence[str]) -> tuple[str, ...]:
    """Return the numbers among the words of a normalised name, in order, in digits."""
    digits: list[str] = []
    last = -1
    for at, word in enumerate(words):
        if (one := canonical_number(words, at)) is None:
            digits += _digits(word)
        elif last == at - 1 >= 0 and (joint := _joined(int(digits[-1]), word, int(one))):
            digits[-1], last = joint, at
        else:
            digits.append(one)
            last = at
    return tuple(digits)


def canonical_number(words: Sequence[str], at: int) -> str | None:
    """Return the word at `at` in digits if it is a number, else `None`.

    Roman numerals count up to 39; of two letters not in first place, where they are words of other
    languages (Xi, Vi); a single letter only where a king's number stands: last, or before "of" and
    the like.
    """
    word = words[at]
    if word in WORDS:
        return WORDS[word]
    if word[0].isdigit():
        match = _ORDINAL.match(word)
        digits = match[1] if match else word
        return (digits.lstrip("0") or "0") if digits.isdecimal() else None
    if word[0] not in _VALUES or not _REGNAL.match(word):
        return None
    if len(word) > 2 or (at and (len(word) == 2 or _stands_as_regnal(words, at))):
        return str(roman(word))
    return None


def roman(word: str) -> int:
    """Return the value of a Roman numeral in lower case, 0 if it is none."""
    if not _ROMAN.match(word):
        return 0
    values = [_VALUES[letter] for letter in word]
    pairs = zip(values, [*values[1:], 0], strict=True)
    return sum(-value if value < after else value for value, after in pairs)


def designate_apart(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether two names differ only in what distinguishes members of a series.

    This is a single letter (Vitamin A and B) or a Roman numeral of any size (LIV and LV) in the
    same place.
    """
    if len(first) != len(second):
        return False
    differing = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    if len(differing) != 1 or len(first) == 1:
        return False
    a, b = differing[0]
    return (len(a) == 1 and len(b) == 1) or (roman(a) > 0 and roman(b) > 0)


def _stands_as_regnal(words: Sequence[str], at: int) -> bool:
    return at == len(words) - 1 or words[at + 1] in _AFTER_REGNAL


def _joined(before: int, word: str, value: int) -> str:
    """Join `twenty` `one` to 21 and `five` `hundred` to 500; "" if they stay two numbers."""
    if word not in WORDS:
        return ""
    if before in range(20, 100, 10) and 0 < value < 10:
        return str(before + value)
    return str(before * value) if value >= 100 and before < value else ""


def _digits(word: str) -> list[str]:
    return [] if word.isalpha() else _DIGITS.findall(word)


def counted(n: int, what: str) -> str:
    """Return a number with its noun, which is given in the plural: `1 document`."""
    if n == 1:
        what = f"{what[:-3]}y" if what.endswith("ies") else what.removesuffix("s")
    return f"{n:,} {what}"
