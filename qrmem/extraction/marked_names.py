"""Names that marks show instead of capitals: quoted titles, and scripts that have no capitals."""

import re

from qrmem.extraction import vocabulary as voc

_UNCASED = re.compile(
    "[\u0590-\u08ff\u0900-\u0dff\u0e00-\u0fff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
)
_TITLE = re.compile(
    r"(?:[“\"«„]|(?<![\w])[‘'])([^\W\d_][^“”\"«»„‘\n.!?;]{1,60}?)[,.]?(?:[”\"»]|[’'](?!\w))"
    r"|(?<!\w)[_*]([^\W\d_][^_*\n.!?;]{1,60}?)[_*](?!\w)"
)
_MARK = re.compile("[“\"«„‘'_*]")
_CUE = re.compile(r"([^\W\d_]+),?\s*\Z")
_WORD = re.compile(r"[^\W\d_]+")
_BRACKETS = re.compile("[『《〈]([^『』《》〈〉\n]{1,40})[』》〉]")
_SHORT_QUOTE = re.compile("[「“‘]([^「」“”‘’\n。、，！？!?,.]{2,12})[」”’]")
_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{2,}(?:[・＝][\u30a1-\u30fa\u30fc]+)*")
_HAN_PERSON = re.compile("([\u4e00-\u9fff]{1,4})(?=さん|さま|ちゃん|くん|先生|博士|女士|小姐)")
_HANGUL_PERSON = re.compile("([\uac00-\ud7af]{2,4})(?= ?(?:씨|님|선생))")
_SEMITIC_QUOTE = re.compile('[«“"„]([\u0590-\u08ff][\u0590-\u08ff ]{1,40})[»”"]')


def titles(text: str) -> list[tuple[int, int, str]]:
    """Return `(start, end, type)` of titles in quotation marks or italics, marks left out.

    A quotation is a title if its weighty words all have capitals and there are two of them, or if a
    word such as "novel" or "called" introduces it; anything else is speech or emphasis.
    """
    if not _MARK.search(text):
        return []
    found = []
    for match in _TITLE.finditer(text):
        group = 1 if match.group(1) else 2
        words = _WORD.findall(match.group(group))
        weighty = [w for w in words if w.casefold() not in voc.FUNCTION_WORDS]
        if not weighty or any(w.islower() for w in weighty) or words[0].islower():
            continue
        cue = _CUE.search(text, max(0, match.start() - 24), match.start())
        is_introduced = bool(cue) and cue is not None and cue.group(1).casefold() in voc.WORK_CUES
        if is_introduced or (len(weighty) > 1 and not _is_speech(text, match)):
            kind = "WORK" if is_introduced and cue and cue.group(1)[-2:] != "ed" else ""
            found.append((*match.span(group), kind))
    return found


def _is_speech(text: str, match: re.Match[str]) -> bool:
    """A comma or stop inside the marks, or a comma or colon before them, makes it speech."""
    before = text[: match.start()].rstrip()[-1:]
    inside = text[match.end() - 2 : match.end() - 1]
    return before in {",", ":", ""} or inside in {",", "."}


def uncased(text: str) -> list[tuple[int, int, str]]:
    """Return `(start, end, type)` of names in scripts without capital letters.

    Brackets for titles, Katakana runs, forms of address after a name, and short quotations.
    """
    if text.isascii() or not _UNCASED.search(text):
        return []
    found = [(*m.span(1), "WORK") for m in _BRACKETS.finditer(text)]
    found += [(*m.span(1), "PERSON") for m in _HAN_PERSON.finditer(text)]
    found += [(*m.span(1), "PERSON") for m in _HANGUL_PERSON.finditer(text)]
    found += [(*m.span(1), "") for m in _SEMITIC_QUOTE.finditer(text)]
    found += [(*m.span(1), "") for m in _SHORT_QUOTE.finditer(text) if _UNCASED.search(m.group(1))]
    found += [(*m.span(), "") for m in _KATAKANA.finditer(text)]
    return _without_overlap(found)


def _without_overlap(found: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Keep the earliest, and of those the longest."""
    kept: list[tuple[int, int, str]] = []
    for span in sorted(found, key=lambda s: (s[0], -s[1], s[2])):
        if not kept or span[0] >= kept[-1][1]:
            kept.append(span)
    return kept
