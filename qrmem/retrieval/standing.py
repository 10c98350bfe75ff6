"""Standing wishes of users: a guess from some fifteen English cues, in their own words only.

Who wants to be sure says so by hand (`Memory.add_turn(…, standing=True)`). What a user quotes,
cites or hands over to be worked on (a mail, a text to translate, a story) is no wish of the user.
The time is linear in the text's length.
"""

import re
from collections.abc import Iterable, Mapping

from qrmem.text.sentences import sentences

_LOOKED_AT = 400
"""Number of first characters of a sentence in which a cue is looked for."""
_LEAD = (
    r"\W*(?:(?:please|also|and|so|but|ok|okay|then|actually|you should|you must|can you|could you"
    r"|would you)\b[,:]? ?)*"
)
"""What a sentence may begin with, before what it asks for."""
_CUE = re.compile(
    rf"{_LEAD}(?:(?:always|never) (?!(?:a|an|the|here|there|too|mind|ever|again|been|had|have|was"
    r"|were|will|shall|heard|saw|seen|knew|thought|got|\w+ed|\w+ing|\w+ly)\b)\w"
    r"|(?:make|be) sure (?:to|you|that|your|all|every)\b|avoid \w|remember (?:that )?(?:i|we)\b"
    r"|don['’]t ever (?!give|quit)\w|call me \w|stop \w+ing\b"
    r"|keep (?:your|all|every|the) (?:answer|repl|response))"
    r"|.*?\b(?:from now on|going forward|in (?:the )?future,|by default|unless i (?:ask|say)\b"
    r"|(?:when|whenever|every time|if) i (?:ask|say|mention|want|send)\b"
    r"|i(?:['’]d| would)?(?: really| much| always| generally)? prefer\b"
    r"|i (?:always|never) (?:want|need|like)\b|i(?:['’]d like| would like| want| need) you to\b)",
    re.IGNORECASE | re.DOTALL,
)
_FOREIGN = re.compile(
    r"```.*?(?:```|\Z)|^[ \t]*>[^\n]*"
    r"|\"(?:[^\"\n]|\n(?!\n))*\"?|“[^”]*”?|„[^“”]*[“”]?|«[^»]*»?|‘[^’]*’?"
    r"|(?<!\w)'[^'\n]{1,300}'(?!\w)",
    re.DOTALL | re.MULTILINE,
)
"""Code, quoted lines, quotations."""
_SAID = re.compile(
    r"(?<!\bi )\b(?:said|says|wrote|writes|asked|asks|replied|told|tells|claims|according to"
    r"|schr(?:ieb|eibt)|sagt(?:e|)|meint(?:e|)|escrib(?:ió|e)|dijo|dice|écri(?:t|vait)|a dit)\b",
    re.IGNORECASE,
)
"""Somebody else is cited: "My boss said I should always wear a tie"."""
_TASK = re.compile(
    r"\b(?:translat|übersetz|traduc|tradui|traduz)|\b(?:proofread|paraphrase|rephrase|rewrite"
    r"|summari[sz]e|correct|edit|improve|reply to|answer) (?:this|these|the (?:following|mail))\b"
    r"|\b(?:write|tell|continue|imagine|compose|here(?:['’]s| is)|this is|a line of|from)\b.{0,40}"
    r"\b(?:stor(?:y|ies)|novel|poem|joke|scene|dialogue|lyrics|song|tale|play|film|movie|book"
    r"|letter|e?-?mail|message)\b"
    r"|\b(?:pretend|once upon a time|chapter [0-9ivx]+)\b|\A\W*(?:dear|sehr geehrte|estimad|querid"
    r"|liebe|cher|chère)\w* |^(?:from|to|subject|von|an|betreff|de|para|asunto|à|objet):",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
"""What follows is a text to work on, a story or a letter."""
_COLON = re.compile(r":(?=\s|[\"“„«‘']|\Z)")
_OWN_LIST = re.compile(
    r"\b(?:remember|rules?|requests?|preferences?|wish(?:es)?|things?|instructions?|reminder"
    r"|please|guidelines?)(?: for you)?\s*\Z",
    re.IGNORECASE,
)
"""Before a colon: what follows is the user's own, as in "One more thing: …"."""
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n")


def wishes(text: str) -> str:
    """Return the sentences that state a lasting wish, with "…" for the sentences between."""
    result, after = "", 0
    for start, end in wish_spans(text):
        result = f"{result.rstrip()} … " if result and start > after else result
        result += text[start:end]
        after = end
    return result.strip()


def wish_spans(text: str) -> list[tuple[int, int]]:
    """Return the start and the end of each sentence that states a lasting wish of its writer."""
    own = _FOREIGN.sub(lambda match: " " * len(match.group()), text)
    spans, foreign = [], 0
    for start, end in sentences(text):
        if start < foreign:
            continue
        said = own[start : min(end, start + _LOOKED_AT)]
        colon = _introducing(said)
        head = said if colon is None else said[: colon + 1]
        begins = (0, *(match.end() for match in _COLON.finditer(said)))
        is_wish = any(_CUE.match(said, at) for at in begins) and not _SAID.search(said)
        if is_wish and colon is None:
            spans.append((start, end))
        elif _TASK.search(head):
            break
        elif colon is not None:
            foreign = _end_of_foreign(text, start + colon + 1)
    return spans


def _introducing(said: str) -> int | None:
    """Return the position of a colon after which a sentence is not the user's own."""
    for match in _COLON.finditer(said):
        if not _OWN_LIST.search(said[: match.start()][-40:]):
            return match.start()
    return None


def _end_of_foreign(text: str, start: int) -> int:
    """Return where a text that a colon introduces ends: with its paragraph, or never."""
    end = _PARAGRAPH.search(text, start)
    return end.start() if end and text[start : end.start()].strip() else len(text)


def first_wishes(numbers: Iterable[int], matching: Mapping[int, float]) -> list[int]:
    """Return turns with wishes in order: those that match the prompt, then the newest.

    Args:
        numbers: of turns with wishes.
        matching: turns that match the prompt, with their scores.
    """
    return sorted(numbers, key=lambda n: (-matching.get(n, 0.0), -n))
