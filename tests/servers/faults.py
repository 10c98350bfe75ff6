"""Faults of the test server: failed requests, and replies that are hard to parse."""

import hashlib
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import formatdate
from time import time

Spoil = Callable[[str], str | None]
"""Takes the right reply, gives what is sent as the message's content."""


@dataclass(frozen=True)
class Refusal:
    """An answer with a failure status."""

    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)


def error(status: int, message: str, code: str = "", **headers: str) -> Refusal:
    body = json.dumps({"error": {"message": message, "type": "error", "code": code or None}})
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Refusal(status, body, {"content-type": "application/json", **named})


_PAGE = "<!DOCTYPE html><html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1>"


def refusal(name: str) -> Refusal | None:
    """Return the refusal of a name such as `429`, `429-after:0.2`, `429-date:1`, `502-html`."""
    kind, _, value = name.partition(":")
    known: Mapping[str, Callable[[], Refusal]] = {
        "400": lambda: error(400, "Bad request"),
        "400-filter": lambda: error(
            400,
            "The response was filtered due to the prompt triggering Azure OpenAI's content "
            "management policy. Please modify your prompt and retry.",
            "content_filter",
        ),
        "401": lambda: error(401, "Incorrect API key provided", "invalid_api_key"),
        "403": lambda: error(403, "This key may not use this model"),
        "404": lambda: error(404, "Not Found"),
        "404-model": lambda: error(404, "The model does not exist", "model_not_found"),
        "429": lambda: error(429, "Rate limit reached for requests"),
        "429-after": lambda: error(429, "Rate limit reached", retry_after=value or "1"),
        "429-date": lambda: error(
            429, "Rate limit reached", retry_after=formatdate(time() + float(value), usegmt=True)
        ),
        "429-quota": lambda: error(
            429, "You exceeded your current quota, please check your plan", "insufficient_quota"
        ),
        "500": lambda: error(500, "The server had an error"),
        "500-empty": lambda: Refusal(500, ""),
        "502-html": lambda: Refusal(502, _PAGE, {"content-type": "text/html"}),
        "503": lambda: error(503, "Overloaded"),
    }
    return known[kind]() if kind in known else None


def _cut(reply: str) -> str:
    return reply[: len(reply) * 2 // 3]


def _quoted(reply: str) -> str:
    return repr(json.loads(reply)) if "'" not in reply else reply


def _wrapped(reply: str) -> str:
    return json.dumps({"result": json.loads(reply)})


def _bad_item(reply: str) -> str:
    found = json.loads(reply)
    for value in found.values():
        if isinstance(value, list):
            value.insert(0, {"": None})
    return json.dumps(found)


def _renamed(reply: str) -> str:
    return json.dumps({name.upper(): value for name, value in json.loads(reply).items()})


def _numbers_as_text(reply: str) -> str:
    found = json.loads(reply)
    return json.dumps({k: str(v) if isinstance(v, int) else v for k, v in found.items()})


def _single_items(reply: str) -> str:
    found = json.loads(reply)
    one = {k: v[0] if isinstance(v, list) and len(v) == 1 else v for k, v in found.items()}
    return json.dumps(one)


def _plus(reply: str) -> str:
    return json.dumps({"thoughts": "I was asked for JSON.", **json.loads(reply), "confidence": 1})


READABLE: Mapping[str, Spoil] = {
    "think": lambda r: f'<think>Maybe {{"entities": ["Nobody"]}}? No.</think>\n{r}',
    "think-untagged": lambda r: f"Let me think.\n</think>\n\n{r}",
    "reasoning": lambda r: f"<reasoning>hm</reasoning>{r}",
    "fence": lambda r: f"```json\n{r}\n```",
    "fence-plain": lambda r: f"```\n{r}\n```",
    "fence-open": lambda r: f"```json\n{r}",
    "prose": lambda r: f"Sure, here it is:\n\n{r}\n\nLet me know if you need more.",
    "prose-braces": lambda r: f"I fill in {{the form}}:\n{r}",
    "byte-order-mark": lambda r: f"\ufeff{r}",
    "spaces": lambda r: f"\n\n   {r}   \n",
    "trailing-comma": lambda r: f"{r[:-1]},}}",
    "single-quotes": _quoted,
    "wrapped": _wrapped,
    "in-list": lambda r: f"[{r}]",
    "in-string": lambda r: json.dumps(r),
    "upper-keys": _renamed,
    "extra-fields": _plus,
    "numbers-as-text": _numbers_as_text,
    "single-items": _single_items,
    "bad-item": _bad_item,
    "echo-and-answer": lambda r: f'{{"type": "object", "properties": {{}}}}\n{r}',
    "comments": lambda r: f"{r[:-1]} // done\n}}",
    "no-end": lambda r: r[:-1],
    "twice": lambda r: f"{r}\n{r}",
}
"""Replies that still hold the answer."""


def _emptied(reply: str) -> str:
    found = json.loads(reply)
    return json.dumps({k: [] if isinstance(v, list) else v for k, v in found.items()})


LAZY: Mapping[str, Spoil] = {"nothing-found": _emptied}
"""Replies of the right form that hold nothing."""

ENDLESS: Mapping[str, Spoil] = {"huge": lambda r: f"{r}\n" + "And so on, and so forth. " * 400_000}
"""Replies that go on for ten megabytes, whatever `max_tokens` says."""

UNREADABLE: Mapping[str, Spoil] = {
    "empty": lambda r: "",
    "blank": lambda r: "  \n ",
    "null": lambda r: None,
    "nonsense": lambda r: "As a large language model I enjoy long walks.",
    "think-unclosed": lambda r: "<think>" + r[: len(r) // 2],
    "echo-schema": lambda r: '{"type": "object", "properties": {"entities": {"type": "array"}}}',
    "wrong-keys": lambda r: '{"foo": "bar"}',
    "number": lambda r: "42",
    "list-of-lists": lambda r: "[[[[]]]]",
    "deep": lambda r: "[" * 5000,
    "binary": lambda r: "\x00\x01\ud800\ufffe{",
    "xml": lambda r: "<entities><entity>Nobody</entity></entities>",
}
"""Replies that hold no answer."""

SPOILT: Mapping[str, Spoil] = {**READABLE, **UNREADABLE, "cut": _cut}

TRANSPORT = ("reset", "cut-body", "hang", "drip", "html", "no-choices", "error-200", "refuse")
ENDINGS = ("length", "content_filter", "refusal")


@dataclass(frozen=True)
class Faults:
    """Which request gets which fault.

    Attributes:
        script: by number of the request, from 1; `*` for every one.
        rates: share of the requests that get a fault, drawn by content and how often that content
            has come, so that a storm is the same in every order.
    """

    script: Mapping[int, str] = field(default_factory=dict)
    always: str = ""
    since: int = 1
    rates: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0

    def of(self, number: int, content: str, times: int) -> str:
        """Return the fault for a request, or "".

        Args:
            number: from 1, over all requests.
            times: how often this content came before.
        """
        if number in self.script:
            return self.script[number]
        if self.always and number >= self.since:
            return self.always
        if not self.rates:
            return ""
        digest = hashlib.sha256(f"{self.seed}|{times}|{content}".encode()).hexdigest()
        point = random.Random(digest).random()
        for name, share in self.rates.items():
            if point < share:
                return name
            point -= share
        return ""


def check(name: str) -> str:
    """Return a fault's name if there is such a fault, else raise `ValueError`."""
    known: Sequence[str] = (*TRANSPORT, *ENDINGS, *SPOILT, *LAZY, *ENDLESS)
    if name in (*known, "malformed") or refusal(name) is not None:
        return name
    raise ValueError(
        f"no fault is called {name!r}; there are a status, malformed and {', '.join(known)}"
    )
