"""An OpenAI-compatible server that answers without a model and misbehaves on demand.

    python -m servers.openai_server --port 8000 --latency 0.2 --rate 429=0.2 --rate malformed=0.1

Its answers are made from the request alone (`servers.answering`), so it is good for trying qrmem
with no key, and for tests over real HTTP. It counts what it was asked: `GET /stats`.
"""

import argparse
import asyncio
import base64
import contextlib
import hashlib
import json
import math
import random
import re
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import eq
from typing import Any, Self, TypeVar

from servers import answering, faults
from servers.faults import ENDINGS, ENDLESS, LAZY, SPOILT, Faults, Refusal, refusal

Json = Any
_TEXTS = {**SPOILT, **LAZY, **ENDLESS}
Answerer = Callable[[Mapping[str, Json]], str]


@dataclass
class Behaviour:
    """How a server is, apart from faults.

    Attributes:
        latency: seconds before an answer; with `spread` drawn between 1 and 1 + spread times it.
        forms: output forms that it takes; another is refused.
        later: forms that it takes from request `later_since` on, which may be fewer.
        obeys_forms: whether it keeps to a form that it takes; else it answers in prose.
        parameters: request parameters that it refuses.
        roles: whether it takes a system message, and two messages of one role.
        refusal: the status with which it refuses a form or a parameter.
        models: known names; empty takes any.
        key: the key that it wants, or "" for any; `name:password` may come as a login, too.
        context: tokens that it reads, or 0 for any number.
        filtered: a content filter refuses a prompt that holds this text, as Azure's does.
        too_large: it refuses a prompt of more tokens as too many for a minute, with `large_status`.
        gives_usage: whether it says what it counted.
        thought: tokens that it thinks before it says a word; they count for the limit of a reply.
        thinks: whether its text stands among a model's thoughts, as LM Studio may have it.
        gives_log_probs: whether it gives them where they are asked for.
        surprise: of each token of a prompt whose log-probabilities are asked for.
        streams: whether it streams where it is asked to; else it answers in one piece.
        gives_ends: whether a stream says why it ends, before it says that it is done.
        batch: texts that it embeds at once, or 0 for any number; others it refuses as `refusal`.
        dimension: of its vectors.
        vector: of a text, by its dimension.
        in_order: whether vectors come in the order of their texts; else a client needs the index.
        relevance: of a query and a text, as its rerank endpoint has it.
        told: makes the body of the reply from the rows of a reranking.
        headers: sent with each chat reply.
        caches: whether it keeps prompts, and says how much of a new one begins as an earlier one.
    """

    latency: float = 0.0
    spread: float = 0.0
    forms: Sequence[str] = ("json_schema", "json_object+schema", "json_object", "text")
    later: Sequence[str] = ()
    later_since: int = 0
    obeys_forms: bool = True
    parameters: Sequence[str] = ()
    roles: bool = True
    refusal: int = 400
    models: Sequence[str] = ()
    key: str = ""
    context: int = 0
    filtered: str = ""
    too_large: int = 0
    large_status: int = 413
    gives_usage: bool = True
    thought: int = 0
    thinks: bool = False
    gives_log_probs: bool = True
    surprise: Callable[[str], float] = lambda text: 1.0
    streams: bool = True
    gives_ends: bool = True
    batch: int = 0
    dimension: int = 32
    vector: Callable[[str, int], Sequence[float]] = lambda text, width: vector(text, width)
    in_order: bool = False
    relevance: Callable[[str, str], float] = lambda query, text: 0.5
    told: Callable[[list[Json]], Json] = lambda rows: {"results": rows}
    headers: Mapping[str, str] = field(default_factory=dict)
    caches: bool = False
    raw: Callable[[Mapping[str, str]], bytes] | None = None


@dataclass
class Stats:
    """What a server was asked."""

    requests: int = 0
    connections: int = 0
    answered: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cached_tokens: int = 0
    most_in_flight: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    contents: Counter[str] = field(default_factory=Counter)
    embedded: int = 0
    bodies: list[dict[str, Json]] = field(default_factory=list)

    @property
    def repeated(self) -> int:
        """Requests beyond the first with the same content."""
        return self.requests - len(self.contents)

    def as_json(self) -> dict[str, Json]:
        """Return the figures, without the bodies."""
        shown = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "bodies"}
        return {**shown, "contents": len(self.contents), "repeated": self.repeated}


class OpenAIServer:
    """Listens on loopback while its context is open."""

    def __init__(
        self,
        *,
        answer: Answerer = answering.answer,
        faults: Faults | None = None,
        behaviour: Behaviour | None = None,
        port: int = 0,
    ) -> None:
        self.faults = faults or Faults()
        self.behaviour = behaviour or Behaviour()
        self.stats = Stats()
        self._answer = answer
        self._port = port
        self._server: asyncio.Server | None = None
        self._in_flight = 0
        self._prompts: list[str] = []
        self._connections: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Base URL for clients."""
        return f"http://127.0.0.1:{self._port}/v1"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def forever(self) -> None:
        """Serve until cancelled."""
        assert self._server is not None
        await self._server.serve_forever()

    # --- HTTP ------------------------------------------------------------------------------------

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        self.stats.connections += 1
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._connections.discard(task)
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read one request and answer it; return whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = head.split("\r\n")
        method, path, _ = first.split(" ", 2)
        headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self._in_flight += 1
        self.stats.most_in_flight = max(self.stats.most_in_flight, self._in_flight)
        try:
            return await self._route(method, path, headers, body, writer)
        finally:
            self._in_flight -= 1

    async def _route(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes,
        writer: asyncio.StreamWriter,
    ) -> bool:
        if method == "GET" and path == "/stats":
            return await self._send(writer, 200, self.stats.as_json())
        if self.behaviour.raw is not None:
            self.stats.requests += 1
            writer.write(self.behaviour.raw(headers))
            await writer.drain()
            return False
        if method == "GET" and path == "/v1/models":
            data = [{"id": name, "object": "model"} for name in self.behaviour.models or ["test"]]
            return await self._send(writer, 200, {"object": "list", "data": data})
        try:
            request = json.loads(body)
        except ValueError:
            return await self._refuse(writer, "400")
        if self.behaviour.key and headers.get("authorization") not in _proofs(self.behaviour.key):
            return await self._refuse(writer, "401")
        if self.behaviour.models and request.get("model") not in self.behaviour.models:
            return await self._refuse(writer, "404-model")
        if path == "/v1/embeddings":
            return await self._embeddings(request, writer)
        if path == "/v1/rerank":
            return await self._rerank(request, writer)
        if path == "/v1/chat/completions":
            return await self._chat(request, writer)
        if path == "/v1/completions":
            self.stats.answered += 1
            self.stats.tokens_in += answering.words([request["prompt"]])
            self.stats.tokens_out += 1
            return await self._send(writer, 200, _echoed(request, self.behaviour.surprise))
        return await self._refuse(writer, "404")

    async def _refuse(self, writer: asyncio.StreamWriter, name: str) -> bool:
        self.stats.refused[name] += 1
        refused = refusal(name)
        assert refused is not None
        return await self._send(writer, refused.status, refused.body, refused.headers)

    async def _send(
        self,
        writer: asyncio.StreamWriter,
        status: int,
        body: Json,
        headers: Mapping[str, str] | None = None,
    ) -> bool:
        text = body if isinstance(body, str) else json.dumps(body)
        writer.write(_head(status, len(text.encode()), headers or {}) + text.encode())
        await writer.drain()
        return True

    async def _rerank(self, request: dict[str, Json], writer: asyncio.StreamWriter) -> bool:
        """Answer as Cohere and Jina do: the best texts by their places, best first."""
        self.stats.requests += 1
        self.stats.bodies.append(request)
        fault = self.faults.of(self.stats.requests, "", 0)
        await self._wait("")
        if fault and refusal(fault) is not None:
            return await self._refuse(writer, fault)
        query, texts = request["query"], request["documents"]
        scores = [self.behaviour.relevance(query, text) for text in texts]
        order = sorted(range(len(texts)), key=lambda n: -scores[n])[: request["top_n"]]
        self.stats.answered += 1
        body = self.behaviour.told([{"index": n, "relevance_score": scores[n]} for n in order])
        return await self._deliver(
            writer, body if isinstance(body, str) else json.dumps(body), fault
        )

    # --- chat ------------------------------------------------------------------------------------

    async def _chat(self, request: dict[str, Json], writer: asyncio.StreamWriter) -> bool:
        content = json.dumps(request, sort_keys=True)
        key = hashlib.sha256(content.encode()).hexdigest()
        self.stats.requests += 1
        number = self.stats.requests
        fault = self.faults.of(number, key, self.stats.contents[key])
        self.stats.contents[key] += 1
        self.stats.bodies.append(request)
        if fault == "malformed":
            fault = sorted(SPOILT)[int(key[:8], 16) % len(SPOILT)]
        if fault:
            self.stats.faults[fault] += 1
        await self._wait(key)
        if (objection := self._objection(request)) is not None:
            return await self._send(writer, objection.status, objection.body, objection.headers)
        if refusal(fault) is not None:
            return await self._refuse(writer, fault)
        reply = self._reply(request, fault)
        is_whole = fault in faults.TRANSPORT and fault not in {"reset", "cut-body"}
        if request.get("stream") and self.behaviour.streams and not is_whole:
            return await self._stream(writer, request, reply, fault)
        return await self._deliver(writer, json.dumps(reply), fault)

    async def _wait(self, key: str) -> None:
        if self.behaviour.latency:
            share = random.Random(key).random()
            await asyncio.sleep(self.behaviour.latency * (1 + self.behaviour.spread * share))

    def _objection(self, request: Mapping[str, Json]) -> Refusal | None:
        """Return why this kind of server does not take the request, or `None`."""
        behaviour = self.behaviour
        for name in behaviour.parameters:
            if name in request:
                other = {"max_tokens": "; use max_completion_tokens instead"}.get(name, "")
                return faults.error(behaviour.refusal, f"Unsupported parameter: {name!r}{other}")
        given = [message["role"] for message in request["messages"]]
        if not behaviour.roles and (given[0] != "user" or any(map(eq, given, given[1:]))):
            said = "Conversation roles must alternate user/assistant/user/assistant/..."
            return faults.error(behaviour.refusal, said)
        form = form_of(request)
        is_later = behaviour.later_since and self.stats.requests >= behaviour.later_since
        if form not in (behaviour.later if is_later else behaviour.forms):
            return faults.error(
                behaviour.refusal, f"response_format of type {form!r} is not supported"
            )
        if behaviour.context and _prompt_tokens(request) > behaviour.context:
            said = f"This model's maximum context length is {behaviour.context} tokens"
            return faults.error(400, said, "context_length_exceeded")
        if behaviour.filtered and behaviour.filtered in json.dumps(request["messages"]):
            return faults.refusal("400-filter")
        if behaviour.too_large and (asked := _prompt_tokens(request)) > behaviour.too_large:
            said = f"on tokens per minute (TPM): Limit {behaviour.too_large}, Requested {asked}"
            said = f"Request too large for model {said}, please reduce your message size"
            return faults.error(behaviour.large_status, said, "rate_limit_exceeded")
        return None

    def _reply(self, request: Mapping[str, Json], fault: str) -> dict[str, Json]:
        text: str | None = self._answer(request)
        finish = "stop"
        if not self.behaviour.obeys_forms:
            text = "Of course! I read it and found: " + re.sub(r'[{}"\[\]]', "", text or "")
        if fault in _TEXTS:
            with contextlib.suppress(ValueError):  # only JSON can be spoilt in some of the ways
                text = _TEXTS[fault](text or "")
        most = int(request.get("max_tokens") or request.get("max_completion_tokens") or 10**9)
        most = max(0, most - self.behaviour.thought)
        if text and fault not in ENDLESS and answering.words([text]) > most:
            text, finish = _shortened(text, most), "length"
        message: dict[str, Json] = {"role": "assistant", "content": text}
        if fault in ENDINGS:
            finish = fault if fault != "refusal" else "stop"
            message["content"] = (text or "")[: len(text or "") * 2 // 3]
        if fault == "refusal":
            message |= {"content": None, "refusal": "I cannot help with that."}
        if self.behaviour.thinks:
            message |= {"content": "", "reasoning_content": message["content"]}
        spent = _prompt_tokens(request), answering.words([message["content"] or ""])
        self.stats.answered += 1
        self.stats.tokens_in += spent[0]
        self.stats.tokens_out += spent[1]
        reply: dict[str, Json] = {
            "id": "chatcmpl-test",
            "object": "chat.completion",
            "model": request.get("model"),
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        }
        if request.get("logprobs") and self.behaviour.gives_log_probs:
            reply["choices"][0]["logprobs"] = {"content": log_probs(message["content"] or "")}
        if self.behaviour.gives_usage:
            reply["usage"] = {"prompt_tokens": spent[0], "completion_tokens": spent[1]}
        if self.behaviour.caches:
            known = self._known_of(request)
            self.stats.cached_tokens += known
            reply["usage"]["prompt_tokens_details"] = {"cached_tokens": known}
        return reply

    def _known_of(self, request: Mapping[str, Json]) -> int:
        """Return the tokens with which a prompt begins as an earlier one did, and keep it."""
        prompt = "\n".join(str(message["content"]) for message in request["messages"])
        shared = max((_alike(prompt, earlier) for earlier in self._prompts), default=0)
        self._prompts.append(prompt)
        return answering.words([prompt[:shared]])

    async def _stream(
        self,
        writer: asyncio.StreamWriter,
        request: Mapping[str, Json],
        reply: Mapping[str, Json],
        fault: str,
    ) -> bool:
        """Send a reply in pieces; `reset` breaks it off half-way, `cut-body` ends it there."""
        choice = reply["choices"][0]
        text, refused = choice["message"]["content"] or "", choice["message"].get("refusal")
        said = [{"content": text[at : at + 5]} for at in range(0, len(text), 5)]
        if refused:
            said = [{"refusal": refused}]
        if self.behaviour.thinks:
            said = [{"content": None, "reasoning_content": choice["message"]["reasoning_content"]}]
        chunks: list[Json] = [{"choices": [{"index": 0, "delta": delta}]} for delta in said]
        if fault in {"reset", "cut-body"}:
            chunks = chunks[: len(chunks) // 2]
        else:
            ending = {"delta": {}, "finish_reason": choice["finish_reason"]}
            if not self.behaviour.gives_ends:
                ending["finish_reason"] = None
            chunks.append({"choices": [{"index": 0, **ending, "logprobs": choice.get("logprobs")}]})
            if "usage" in reply and (request.get("stream_options") or {}).get("include_usage"):
                chunks.append({"choices": [], "usage": reply["usage"]})
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
        writer.write(f"{head}transfer-encoding: chunked\r\n\r\n".encode())
        lines = [json.dumps({"model": reply["model"], **chunk}) for chunk in chunks]
        for line in [*lines, "[DONE]"] if fault not in {"reset", "cut-body"} else lines:
            data = f"data: {line}\n\n".encode()
            writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            await writer.drain()
        if fault == "reset":
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _deliver(self, writer: asyncio.StreamWriter, text: str, fault: str) -> bool:
        """Send a reply unchanged, or with one of the failures of a connection."""
        body = text.encode()
        if fault == "hang":
            await asyncio.sleep(3600)
        if fault == "refuse":
            return False
        if fault == "html":
            return await self._send(
                writer, 200, "<html>Log in</html>", {"content-type": "text/html"}
            )
        if fault == "no-choices":
            return await self._send(writer, 200, {"object": "chat.completion", "choices": []})
        if fault == "error-200":
            return await self._send(writer, 200, {"error": {"message": "upstream went away"}})
        if fault == "cut-body":
            return await self._send(writer, 200, text[: len(text) // 2])
        if fault in {"reset", "drip"}:
            writer.write(_head(200, len(body), {}))
            if fault == "reset":
                writer.write(body[: len(body) // 2])
                await writer.drain()
                return False
            for at in range(len(body)):
                writer.write(body[at : at + 1])
                await writer.drain()
                await asyncio.sleep(0.05)
            return True
        return await self._send(writer, 200, text, self.behaviour.headers)

    # --- embeddings ------------------------------------------------------------------------------

    async def _embeddings(self, request: dict[str, Json], writer: asyncio.StreamWriter) -> bool:
        self.stats.requests += 1
        number = self.stats.requests
        key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
        fault = self.faults.of(number, key, self.stats.contents[key])
        self.stats.contents[key] += 1
        self.stats.bodies.append(request)
        await self._wait(key)
        if refusal(fault) is not None:
            return await self._refuse(writer, fault)
        given = request.get("input")
        texts = [given] if isinstance(given, str) else list(given or [])
        most, longest = self.behaviour.batch, self.behaviour.context
        if most and len(texts) > most:
            said = f"batch size {len(texts)} > maximum allowed batch size {most}"
            refused = faults.error(self.behaviour.refusal, said)
            return await self._send(writer, refused.status, refused.body)
        if longest and max(answering.words([text]) for text in texts) > longest:
            refused = faults.error(413, f"`inputs` must have less than {longest} tokens")
            return await self._send(writer, refused.status, refused.body)
        self.stats.embedded += len(texts)
        width = self.behaviour.dimension - (fault == "wrong-dimension")
        rows: list[Json] = [
            {"object": "embedding", "index": i, "embedding": self.behaviour.vector(text, width)}
            for i, text in enumerate(texts)
        ]
        if fault == "nan" and rows:
            rows[0]["embedding"][0] = math.nan
        if fault == "zeros" and rows:
            rows[0]["embedding"] = [0.0] * width
        if not self.behaviour.in_order:
            rows.reverse()
        usage = {"prompt_tokens": answering.words(texts), "total_tokens": answering.words(texts)}
        reply = {"object": "list", "model": request.get("model"), "data": rows, "usage": usage}
        return await self._deliver(writer, json.dumps(reply), fault)


def vector(text: str, dimension: int) -> list[float]:
    """Return a vector that depends on the words of a text alone; not of unit length."""
    total = [0.01] * dimension
    for word in text.lower().split():
        drawn = random.Random(word)
        total = [value + drawn.uniform(-1, 1) for value in total]
    return total


def _proofs(key: str) -> tuple[str, str]:
    """Return what a client that knows the key may say."""
    return f"Bearer {key}", f"Basic {base64.b64encode(key.encode()).decode()}"


def log_probs(text: str) -> list[Json]:
    """Return tokens with log-probabilities that depend on the tokens alone."""
    tokens = re.findall(r"\s*(?:\w+|[^\w\s])", text)
    return [{"token": token, "logprob": -len(token) / 10, "top_logprobs": []} for token in tokens]


def _echoed(request: Mapping[str, Json], surprise: Callable[[str], float]) -> Json:
    """Return a prompt with the log-probabilities of its tokens, and one token more."""
    prompt = str(request["prompt"])
    places = [match.start() for match in re.finditer(r"\S+", prompt)]
    value = -surprise(prompt)
    probs = {
        "text_offset": [*places, len(prompt)],
        "token_logprobs": [None, *[value] * (len(places) - 1), -9.0],
    }
    return {"choices": [{"text": prompt + " x", "logprobs": probs}]}


def _alike(first: str, second: str) -> int:
    """Return the number of characters with which both begin."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(first), len(second)))


def _prompt_tokens(request: Mapping[str, Json]) -> int:
    return answering.words([str(m.get("content")) for m in request.get("messages") or []])


def form_of(request: Mapping[str, Json]) -> str:
    """Return the output form that a request asks for."""
    given = request.get("response_format") or {}
    kind = str(given.get("type", "text"))
    return f"{kind}+schema" if kind == "json_object" and "schema" in given else kind


def _shortened(text: str, most: int) -> str:
    """Return the longest prefix of at most `most` tokens as this server counts them."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if answering.words([text[:middle]]) <= most:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def _head(status: int, length: int, headers: Mapping[str, str]) -> bytes:
    named = {"content-type": "application/json", **headers, "content-length": str(length)}
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status} Status\r\n{lines}\r\n".encode()


Served = TypeVar("Served", bound=OpenAIServer)


@contextlib.contextmanager
def in_thread(server: Served) -> Iterator[Served]:
    """Serve from a thread of its own, for tests that run commands or have no event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
    try:
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@contextlib.asynccontextmanager
async def serving(
    *, answer: Answerer = answering.answer, faults: Faults | None = None, **behaviour: Json
) -> AsyncIterator[OpenAIServer]:
    """Serve on the running loop; `behaviour` are fields of `Behaviour`."""
    async with OpenAIServer(
        answer=answer, faults=faults, behaviour=Behaviour(**behaviour)
    ) as server:
        yield server


# --- command -------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted; the first line printed is the base URL."""
    options = _parser().parse_args(arguments)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(options))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="openai_server", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds")
    parser.add_argument(
        "--spread", type=float, default=0.0, help="latency varies by up to this share"
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        type=_fault,
        metavar="N=NAME",
        help="the fault of request N; N may be *",
    )
    parser.add_argument(
        "--rate",
        action="append",
        default=[],
        type=_rate,
        metavar="NAME=SHARE",
        help="the share of all requests that get a fault, drawn by what is asked",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--form", action="append", help="output form that is taken")
    parser.add_argument("--ignore-forms", action="store_true", help="answer in prose")
    parser.add_argument("--refuse", action="append", default=[], metavar="PARAMETER")
    parser.add_argument("--model", action="append", default=[], help="known model names")
    parser.add_argument("--key", default="")
    parser.add_argument("--context", type=int, default=0)
    parser.add_argument("--no-usage", action="store_true")
    return parser


def _fault(word: str) -> tuple[str, str]:
    number, _, name = word.partition("=")
    if number != "*" and not number.isdecimal():
        raise argparse.ArgumentTypeError(f"N=NAME is wanted, N being a number or *, not {word!r}")
    return number, _known(name)


def _rate(word: str) -> tuple[str, float]:
    name, _, share = word.partition("=")
    try:
        return _known(name), float(share)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"NAME=SHARE is wanted, not {word!r}") from exc


def _known(name: str) -> str:
    try:
        return faults.check(name)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


async def _serve(options: argparse.Namespace) -> None:
    named = dict(options.fault)
    script = Faults(
        script={int(n): name for n, name in named.items() if n != "*"},
        always=named.get("*", ""),
        rates=dict(options.rate),
        seed=options.seed,
    )
    behaviour = Behaviour(
        latency=options.latency,
        spread=options.spread,
        forms=options.form or Behaviour().forms,
        obeys_forms=not options.ignore_forms,
        parameters=options.refuse,
        models=options.model,
        key=options.key,
        context=options.context,
        gives_usage=not options.no_usage,
    )
    async with OpenAIServer(faults=script, behaviour=behaviour, port=options.port) as server:
        print(server.url, flush=True)
        await server.forever()


if __name__ == "__main__":
    main()
