"""Standing wishes of users, and limits of their health or diet: guesses from English words."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from qrmem.text.sentences import sentences
from qrmem.text.words import terms

HEALTH_KEY = "health"
"""Metadata key of a turn that may state limits of its user's health or diet."""
GENERAL_KEY = "general"
"""Metadata key of a turn that may state a wish or a limit that applies to every answer."""
INSTRUCTION_KEY = "instruction"
"""Metadata key of a turn that may state a wish which is more than a preference."""

_ANSWER = r"(?:answers?|repl(?:y|ies)|responses?|messages?|explanations?|summar(?:y|ies))"
_OPENING = (
    r"^\W*(?:(?:actually|also|and|but|so|well|oh|ok(?:ay)?|yes|yeah|no|by the way|remember|please"
    r"|then|just|one more thing)\b[,:]? )*"
)
_LASTING = (
    r"(?:(?:from (?:now|today|here)|going) (?:on|forward)|in (?:the )?future|henceforth"
    r"|as a (?:general )?rule|by default|in general|unless i (?:ask|say|tell you)\b[^,.!?]*)"
)
_LEAD = rf"{_OPENING}(?:{_LASTING}[,:]? )?(?:please )?"
"""What a sentence may begin with, before what it asks for."""
_ASKED = (
    rf"{_LEAD}(?:(?:you (?:should|must)|(?:can|could|would) you(?: please)?"
    r"|i(?:['’]d| would)? (?:like|want|need) you to) )?"
)
_TELL = (
    r"(?:answer|reply|respond|give|show|write|use|explain|include|add|list|format|suggest"
    r"|recommend|mention|tell|call|address|speak|talk|keep|provide|quote|cite|start|begin|end"
    r"|ask|assume|say|convert|translate|round|spell|state|specify|report|highlight|apologi[sz]e)\b"
)
"""What a user asks an assistant to do in its answers."""
_TOLD = rf"(?!give up\b|(?:tell|call) (?!me\b)){_TELL}"
_ALWAYS = (
    rf"{_ASKED}(?:always|never) (?!(?:mind|ever|again|too|so|been|heard|seen|saw|had|knew|thought"
    r"|got|a|an|the|in|on|at|when|to|good|nice|great|better|more|my|our|his|her|their|i|we|you|it"
    r"|know|\w+(?:ed|ing|ly))\b)\w"
)
_TELLING = (
    r"(?:answering|replying|responding|giving|showing|writing|using|explaining|including|adding"
    r"|listing|formatting|suggesting|recommending|mentioning|telling|calling|addressing|providing"
    r"|quoting|citing|starting|beginning|ending|asking|assuming|saying|converting|translating"
    r"|rounding|stating|apologi[sz]ing|repeating|reminding|warning)\b"
)
_WITHDRAWN = (
    rf"{_ASKED}(?:you (?:can|may) )?(?:please )?(?:stop {_TELLING} (?!to\b)\w"
    r"|(?:forget|ignore|disregard|never mind) (?:what|everything|all)(?: that)? i(?:['’]ve| have)?"
    r" (?:said|told you|asked(?: you)?|wrote)(?: before| earlier)? about \w)"
    rf"|{_LEAD}you (?:can|may)(?: now)? (?:answer|reply|respond|give|show|write|use|include|add"
    r"|list|format|mention|quote|cite|call me) [^.!?]*\bagain\b"
    rf"|{_LEAD}you (?:no longer (?:have|need) to {_TELL}"
    rf"|(?:don['’]t|do not) (?:have|need) to {_TELL}[^.!?]* (?:any ?more|any longer)\b)"
)
"""What takes an earlier wish back: "Stop calling me Bo", "Forget what I said about lists"."""
_STYLE = (
    r"(?:emojis?|emoticons?|hashtags|bullet ?points?|bullets|jargon|slang|buzzwords|clich[eé]s"
    r"|disclaimers?|apologies|pleasantries|flattery|introductions?|preambles?|small talk|filler"
    r"|sugar[- ]?coating|exclamation marks?|abbreviations|acronyms|headings|(?:numbered )?lists"
    r"|tables|markdown|footnotes|citations)\b(?! (?:of|about)\b)"
)
"""What an answer may have or not, whatever it is about."""
_LANGUAGES = (
    *("english", "french", "german", "spanish", "italian", "portuguese", "dutch", "swedish"),
    *("norwegian", "danish", "finnish", "icelandic", "polish", "czech", "slovak", "hungarian"),
    *("romanian", "greek", "turkish", "russian", "ukrainian", "arabic", "hebrew", "persian"),
    *("hindi", "urdu", "bengali", "tamil", "chinese", "mandarin", "cantonese", "japanese"),
    *("korean", "vietnamese", "thai", "indonesian", "swahili", "welsh", "irish", "catalan"),
    "latin",
)
_CURRENCIES = (
    *("euro", "euros", "dollar", "dollars", "pounds", "sterling", "kroner", "kronor", "franc"),
    *("francs", "yen", "rupees", "pesos", "zloty", "lira", "yuan", "eur", "usd", "gbp", "chf"),
    *("nok", "sek", "dkk", "jpy", "inr"),
)
_CHOICES = (
    _LANGUAGES,
    _CURRENCIES,
    ("celsius", "fahrenheit", "kelvin"),
    ("metric", "imperial"),
    ("kilometre", "kilometer", "mile", "metre", "meter", "feet", "yard"),
    ("kilogram", "kilo", "gram", "pound", "stone", "ounce"),
    ("british", "american"),
    ("24", "12"),
    ("formally", "informally"),
)
"""Words of which a wish can have only one: an answer is in one language."""
_CHOICE = rf"(?:{'|'.join(word for words in _CHOICES for word in words)})s?\b"
_LANGUAGE = rf"(?:(?:{'|'.join(_LANGUAGES)}|plain (?:language|words))\b)"
_UNIT = (
    r"(?:(?:metric|imperial|si) units|celsius|fahrenheit|(?:british|american) (?:spelling|english)"
    rf"|(?:the )?(?:24|12)-hour (?:clock|time|format)|{_LANGUAGE})"
)
_ALL_ANSWERS = (
    r"(?:your (?:answers|replies|responses|messages|explanations|summaries)"
    rf"|(?:each|every|any|all)(?: of)?(?: your)? {_ANSWER})\b"
)
_MANNER = (
    r"(?:concise|brief|succinct|terse|verbose|long-winded|direct|honest|blunt|frank|critical|formal"
    r"|informal|polite|strict|chatty|vague|condescending)"
)
_GIVEN = (
    r"(?:prices|amounts|sums|distances|temperatures|dates|times|weights|measurements"
    r"|code(?: samples| examples)?|lists|quotations)"
)
_IMPERATIVE = (
    r"(?:(?:(?:please|only|just|always|never|don['’]t|do not) )*"
    rf"(?:{_TELL}|(?:leave|skip|put|avoid|limit|be|do|cut|drop|omit|stick|treat)\b))"
)
"""What a user asks an assistant to do if a case occurs."""
_STYLED = (
    rf"{_ASKED}(?!.*\b(?:this|these|here|tonight|today|tomorrow)\b)"
    rf"(?:(?:use|stick to|switch to|prefer) (?:only )?{_UNIT}"
    rf"|(?:answer|reply|respond|speak|talk|write)(?: back| everything| only| always| to me| with me"
    rf"| me)* in {_LANGUAGE}"
    rf"|(?:skip|omit|drop|cut|spare me|avoid|leave out|keep|no more|no)(?: the| any| all| your)*"
    rf" (?:\w+ )?{_STYLE}(?! (?:of|to|for)\b(?! a minimum))"
    rf"|(?:don['’]t|do not|never) (?:be (?:so |too )?{_MANNER}|repeat my|apologi[sz]e)\b"
    r"|(?:refer to|address) me (?:(?:as|by) (?:my\b|(?-i:[A-Z]))|formally|informally)"
    r"|(?:you (?:can|may) )?call me (?-i:(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)[A-Z])"
    r"|(?:treat me|explain (?:things|everything)(?: to me)?)"
    r" (?:as|like (?:i|an?|to an?|you would))\b"
    r"|assume (?:that )?i(?:['’]m| am| (?:know|use|live|work|want|don['’]t|do not))\b"
    rf"|only {_TELL} (?!it\b|him\b|them\b)"
    rf"|(?:don['’]t forget|remember) to (?:(?:mention|cite|quote|specify|convert"
    r"|round|explain|highlight)|(?:ask|tell|warn|remind|alert) me)\b"
    r"|(?:keep|bear) in mind (?:that )?i(?:['’]m|['’]ve)?\b"
    rf"|be (?:more |less |very |brutally |always |as )*{_MANNER}\b"
    rf"|{_IMPERATIVE}[^.?]* (?:in|from|of|to) {_ALL_ANSWERS})(?![^.!]*\?)"
    rf"|{_LEAD}i(?: want|['’]d (?:like|love)| would (?:like|love)) (?:{_ALL_ANSWERS}"
    r"|you to (?:be\b|(?:challenge|question|correct) (?:me|my)\b))"
    rf"|{_LEAD}(?:{_ALL_ANSWERS}|your (?:tone|style|language)) (?:should|must|have to|need to)\b"
    rf"|{_LEAD}(?:all )?(?:the |your )?(?:\w+ )?{_GIVEN} (?:(?:should|must) (?:always )?(?:be )?)?"
    r"(?:(?:given|written|shown) )?in (?:the )?(?:\w+ )?"
    rf"{_CHOICE}"
)
"""How answers shall look and sound, in words that hold for all of them."""
_IN_CASE = (
    rf"{_OPENING}{_LASTING},? (?:please )?(?:(?:only |just |always |don['’]t |do not )?{_TELL}"
    r"|i(?:['’]d)? (?:want|need|like|prefer))"
    rf"|{_LEAD}{_IMPERATIVE}[^?]* {_LASTING}[.!]?$"
    rf"|{_LEAD}(?:remember|don['’]t forget) (?:that )?(?:i|we)(?:['’]m| am| have| don['’]t| do not"
    r"| can['’]t| cannot| never| only| always| prefer| hate) (?!(?:said|told|asked|mentioned)\b)"
    rf"|{_LEAD}(?:whenever|(?:every|each|any) ?time) (?:i|you|we) [^,.?]+, {_IMPERATIVE}"
    rf"|{_LEAD}when you {_TELL}(?! to\b)[^,.?]*, {_IMPERATIVE}"
    rf"|{_LEAD}(?:when|if) i (?:ask|send|paste|share|post|quote|mention|describe|upload)\b[^,.?]*,"
    rf" (?:please )?(?:only|just|always|never|don['’]t|do not) (?:{_TELL}|correct\b)"
    r"|^\W*for (?!(?:this|that|these|those|the|my|our|an?|now|starters|\d+|his|her|its|days|weeks"
    rf"|months|years)\b)(?:[\w-]+ )?\w+s, (?:please )?(?!add\b){_TELL}"
    rf"|{_ASKED}{_IMPERATIVE}[^.?]* (?:whenever|(?:each|every) time|when) (?:you (?:{_TELL}|help\b)"
    r"|we (?:talk|speak)\b)"
)
"""What to do in one kind of case: "When you quote a price, include the tax"."""
_ORDERED = (
    rf"{_LEAD}(?:(?:(?:make|be) sure (?:to|(?:that )?you)|(?:don['’]t|do not)(?: ever)?) {_TOLD}"
    rf"|(?:make|be) sure (?:to|(?:that )?you) (?:warn|remind|alert) me\b|avoid \w"
    rf"|(?:keep|make) (?:all |your |the |my )*{_ANSWER}\b"
    rf"|i (?:don['’]t|do not) want you to {_TELL})|{_WITHDRAWN}|{_STYLED}"
)
_WRITING = r"(?:texts?|e-?mails?|letters?|drafts?|posts?|captions?)"
_UNWANTED = (
    rf"{_LEAD}i (?:don['’]t|do not|never) want (?:any |more )?"
    r"(?!to\b|\w* ?(?:mistakes?|errors?|typos?|bugs?|gaps?|issues?|problems?)\b)"
    rf"\w+(?: \w+)? in (?:any |all |the |your |my |our |\w+ )?(?:{_ANSWER}|{_WRITING})\b"
)
_ALWAYS_WANTS = rf"{_LEAD}(?:i|we) always want (?!to\b|the best\b|more\b)\w"
_FROM_NOW = rf"\bfrom now on\b|\bin (?:every|each|all)(?: of)?(?: your| my)? {_ANSWER}\b"
_IF_ASKED = r"\b(?:when(?:ever)?|every time|each time|if) i ask\b"
_PREFERS = (
    r"\b(?:i|we)(?:['’]d| would)?(?: \w+ly| always| still| also| much)? prefer\b"
    r"|\b(?:my|our) prefer(?:ence|red)|\b(?:i|we)(?:['’]d| would) (?:much )?rather\b"
    r"|\bi (?:really |always )?(?:don['’]t |do not )?(?:like|want)"
    r" (?:my|it (?:when|if) you|it to be|your|all|short|long)\b"
    rf"|{_LEAD}i(?:['’]m| am)?(?: \w+ly| do not| don['’]t| never| always)*"
    r" (?:hate|dislike|can['’]t stand|cannot stand|loathe|like|love|want|not a fan of|not fond of)"
    rf"(?: long| short| the| your| many| too many)* {_STYLE}"
    rf"|\bi(?:['’]d| would) (?:appreciate|love|like|prefer) it if you (?:always|never)\b"
    rf"|{_LEAD}i (?:generally|usually|normally|typically|mostly) (?:want|like|prefer) (?!to\b)\w"
    rf"|\bit(?:['’]s| is) important to me that you {_TELL}"
    rf"|\bmy (?:favou?rite|default|usual) (?:format|style|tone|units?|language|currency|airport)\b"
    rf"|{_ALWAYS_WANTS}|{_UNWANTED}"
)
_ORDERS = (_ALWAYS, _ORDERED, _IN_CASE, _FROM_NOW, _IF_ASKED)
_STANDING = re.compile("|".join((*_ORDERS, _PREFERS)), re.IGNORECASE)
_INSTRUCTION = re.compile("|".join(_ORDERS), re.IGNORECASE)
_GENERAL = re.compile(
    rf"{_ASKED}(?:always|never) {_TELL}|{_ORDERED}|{_FROM_NOW}|{_UNWANTED}"
    rf"|(?:{_PREFERS}).*\b(?:{_ANSWER}|bullets?|bullet points|lists|paragraphs|units|tables)\b",
    re.IGNORECASE,
)
_TAKES_BACK = re.compile(rf"(?:{_WITHDRAWN})[^,;:.!?]*", re.IGNORECASE)
_STOPS = re.compile(r"\bstop\b|\bneed to\b|\bhave to\b", re.IGNORECASE)
_DENIES = re.compile(r"\b(?:never|not|no|without|avoid|\w+n['’]t)\b", re.IGNORECASE)
_CALLED = re.compile(
    r"(?:^|[,;.!?] |\b(?i:always|please|now on|now|just|and|can) )"
    r"(?:[Cc]all me|[Rr]efer to me as|[Aa]ddress me as)"
    r" (?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)([A-Z]\w+)"
)
"""The name by which users want to be addressed."""
_NO_TOPIC = frozenset(
    terms(
        "always never please stop forget ignore disregard mind what everything all said told asked"
        " wrote before earlier again longer need have any more call use give show write answer"
        " reply respond include add list mention tell don't do not"
    )
)
"""Words of wishes that do not say what they are about."""
_CHOICE_TERMS = tuple(frozenset(terms(" ".join(words))) for words in _CHOICES)
_ANY_CHOICE = frozenset[str]().union(*_CHOICE_TERMS)
_NO_SCOPE = _NO_TOPIC | frozenset(
    terms(
        "speak talk explain back only everything language unit spelling clock hour time format now"
        " future forward going default rule general stick switch address refer answers replies"
        " messages"
    )
)
"""Words that do not say for what somebody chooses a language or a unit."""
_SAME = 0.75
"""Share of the words of either wish that both must have if one says "always", and one "never"."""
_OF_SOMETHING = re.compile(
    rf"{_IF_ASKED}|\b(?:when(?:ever)?|if|before|after|unless|for)\b"
    rf"|\b(?:{_ANSWER}|{_WRITING}) (?:on|about|to)\b",
    re.IGNORECASE,
)
"""Words by which a wish is about one subject, or for one case."""
_ILL = (
    r"(?:diabet|asthma|epilep|migraine|arthrit|ana?emi|co?eliac|allerg|intoleran|hypertension"
    r"|blood pressure|heart condition|\w+ (?:allergy|intolerance|disease|disorder|syndrome)\b)"
)
_HEALTH = re.compile(
    r"\b(?:i|we)(?:['’](?:m|re)| am| are|['’]ve been| have been)"
    r"(?: (?:a|an|not|no longer|now|also|still|both|very|\w+ly))*"
    r" (?:allergic|(?:\w+[- ])?intolerant|vegan|vegetarian|pescatarian|diabetic|asthmatic"
    r"|epileptic|co?eliac|pregnant|breastfeeding|teetotal|sober|dyslexic"
    r"|colou?r[- ]?blind|hard of hearing)\b"
    r"|\b(?:i|we) (?:can['’]t|cannot|can no longer|don['’]t|do not|never|no longer|mustn['’]t)"
    r"(?: \w+ly)? (?:(?:eat|drink)(?! (?:out|in|there|here|together|much|enough|well|at)\b)"
    r"|tolerate|digest)\b"
    r"|\b(?:i|we)(?:['’](?:m|re)| am| are)(?: (?:trying|supposed|told) to avoid| avoiding)"
    r" (?:sugar|gluten|dairy|lactose|meat|alcohol|caffeine|salt|carbs|nuts|eggs|wheat)\b"
    r"|\b(?:i|we)(?:['’](?:m|re)| am| are) on an? (?:[\w-]+ ){1,2}diet\b(?! \w+ing| budget)"
    r"|\bi(?:['’]ve| have|['’]ve got| suffer from| was (?:just |recently )?diagnosed with)"
    rf"(?: been diagnosed with| got| a| an| type| mild| severe| high| low| \d)* {_ILL}"
    r"|\bmy (?:(?:\w+ )?allerg(?:y|ies)|diabetes|asthma|epilepsy|(?:\w+ )?intolerance)\b",
    re.IGNORECASE,
)
"""Statements about somebody's health and diet."""


def is_standing(text: str) -> bool:
    """Return whether a text states a lasting wish of its writer, or limits of health or diet."""
    return is_of_health(text) or any(map(_STANDING.search, _sentences(text)))


def is_of_health(text: str) -> bool:
    """Return whether a text states limits of health or diet."""
    return _HEALTH.search(text) is not None


def is_instruction(text: str) -> bool:
    """Return whether a wish in a text tells what to do, and is no preference among other things."""
    return any(map(_INSTRUCTION.search, _sentences(text)))


def is_general(text: str) -> bool:
    """Return whether a wish in a text applies to every answer: "Always use metric units"."""
    return is_of_health(text) or any(
        _GENERAL.search(one) and not _OF_SOMETHING.search(one) and not one.endswith("?")
        for one in _sentences(text)
    )


def _sentences(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in sentences(text)]


def wishes(text: str) -> str:
    """Return the sentences that state a lasting wish, with "…" for the sentences between."""
    text_so_far, after = "", 0
    for start, end in sentences(text):
        if is_standing(text[start:end]):
            text_so_far = (
                f"{text_so_far.rstrip()} … " if text_so_far and start > after else text_so_far
            )
            text_so_far += text[start:end]
            after = end
    return text_so_far.strip()


def undoes(later: str, earlier: str) -> bool:
    """Return whether a wish takes an earlier one back, or wants the opposite or another name.

    So does one that wants another language, currency or unit for the same things.
    """
    old, new = _meaning(earlier), _meaning(later)
    if old.name and new.name and old.name != new.name:
        return True
    if any(_excludes(one, other) for one in old.choices for other in new.choices):
        return True
    shared = old.topic & new.topic
    if not shared or not (new.withdrawn or old.is_denied != new.is_denied):
        return False
    # "Stop using emojis" repeats "Never use emojis".
    if new.withdrawn and not (old.is_denied and new.is_stop):
        is_same = 2 * len(new.withdrawn & shared) > len(new.withdrawn)
    else:
        is_same = not new.withdrawn and len(shared) >= _SAME * max(len(old.topic), len(new.topic))
    return is_same and is_standing(earlier) and is_standing(later)


class _Meaning(NamedTuple):
    """What a wish is about.

    Attributes:
        name: the name by which its user wants to be addressed, or "".
        topic: its terms without "always", "use" and the like.
        withdrawn: those of the clauses that take an earlier wish back.
        is_stop: whether one of these ends something: "Stop using emojis".
        is_denied: whether it says "never", "not" or the like.
        choices: for each sentence that chooses a language, unit or the like: the place of its kind
            in `_CHOICES`, the chosen terms, and those of what they are for.
    """

    name: str
    topic: frozenset[str]
    withdrawn: frozenset[str]
    is_stop: bool
    is_denied: bool
    choices: tuple["_Choice", ...]


_Choice = tuple[int, frozenset[str], frozenset[str]]


@lru_cache(4096)  # cached, as each text is compared with many
def _meaning(text: str) -> _Meaning:
    matches = (_TAKES_BACK.search(one) for one in _sentences(text))
    clauses = " ".join(match.group() for match in matches if match)
    return _Meaning(
        name=next(iter(_CALLED.findall(text)[-1:]), ""),
        topic=frozenset(terms(text)) - _NO_TOPIC,
        withdrawn=frozenset(terms(clauses)) - _NO_TOPIC,
        is_stop=_STOPS.search(clauses) is not None,
        is_denied=_DENIES.search(text) is not None,
        choices=tuple(_choices(text)),
    )


def _choices(text: str) -> Iterator[_Choice]:
    for one in _sentences(text):
        if not _STANDING.search(one) or _DENIES.search(one) or _TAKES_BACK.search(one):
            continue
        words = frozenset(terms(one)) - _NO_SCOPE
        for kind, known in enumerate(_CHOICE_TERMS):
            if chosen := words & known:
                yield kind, chosen, words - _ANY_CHOICE


def _excludes(one: _Choice, other: _Choice) -> bool:
    """Return whether two choices of one kind are for the same things, and differ."""
    (kind, chosen, scope), (other_kind, others_chosen, other_scope) = one, other
    is_same = len(scope & other_scope) >= _SAME * len(scope | other_scope)
    return kind == other_kind and chosen.isdisjoint(others_chosen) and is_same


def first_wishes(
    marks: Mapping[int, Mapping[str, object]], matching: Mapping[int, float]
) -> list[int]:
    """Return wishes in order: those that match, health, general ones, instructions, the newest.

    Args:
        marks: turns with wishes, with their metadata.
        matching: turns that match the prompt, with their scores.
    """
    return sorted(
        marks,
        key=lambda n: (
            -matching.get(n, 0.0),
            HEALTH_KEY not in marks[n],
            GENERAL_KEY not in marks[n],
            INSTRUCTION_KEY not in marks[n],
            -n,
        ),
    )
