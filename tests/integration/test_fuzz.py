"""Whatever bytes come in, each reader gives what it promises or one line that says what is wrong.

`--hypothesis-profile=searching` draws other and many more examples.
"""

import asyncio
import io
import json
import tempfile
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import openai
import pytest
from archives import export_whole, sealed
from contract.reference import ReferenceStore
from documents import cell, csv_file, docx_of, epub_file, pdf, pptx_file, table, xlsx_file
from hypothesis import given, settings
from hypothesis import strategies as st

from qrmem.cli.chatting import messages
from qrmem.config import Settings
from qrmem.errors import ModelOutputError, QrmemError
from qrmem.eval import Corpus, load
from qrmem.io.archive import export_archive, import_archive
from qrmem.io.sources import identified
from qrmem.io.triple_files import read_openie
from qrmem.llm.budget import load_prices
from qrmem.llm.chat_model import read_completion
from qrmem.llm.client import Fields, joined
from qrmem.llm.embedders import _read as read_embeddings
from qrmem.llm.recorder import Replayer
from qrmem.llm.replies import parse_model
from qrmem.llm.servers import StreamBroken, endpoint, from_status, retry_after
from qrmem.prompts import replies
from qrmem.text.code import outline
from qrmem.text.code.languages import CODE_KEY
from qrmem.text.files import from_bytes
from qrmem.types import Document

TESTS = Path(__file__).parents[1]
EVAL = TESTS / "eval" / "data"

FEW = settings(max_examples=settings().max_examples * 2 // 5)
"""For what is drawn for many kinds of file; it grows with the profile."""
PIECES = [b"", b"<", b"</", b">", b"&x;", b"[" * 500, b"{", b"}", b'"', b"null", b"-1", b"1e999"]
PIECES += [b"\x00", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"\r", b"\xe2\x80\xa8", b"9" * 5000]
CHANGES = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 60),
        st.sampled_from(PIECES) | st.binary(max_size=8),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)
"""Where, how many bytes go, what comes in their place, and whether what went is put there twice."""


def spoiled(data: bytes, changes: list[tuple[float, int, bytes, bool]]) -> bytes:
    """Return data with some bytes changed."""
    for where, length, piece, is_doubled in changes:
        at = int(where * len(data))
        gone = data[at : at + length]
        data = data[:at] + (gone * 2 if is_doubled else b"") + piece + data[at + length :]
    return data


def refused(error: Exception) -> None:
    """See that an error is one line for people."""
    line = str(error)
    assert line
    assert all(char.isprintable() for char in line), repr(line)
    assert len(line) < 2000


def said(error: Exception) -> None:
    """See that an error, which a re-ask or a retry shows, says something."""
    assert str(error)


# --- documents -----------------------------------------------------------------------------------

TABLE = table(cell("Ship", 2) + cell("Marigold"), cell("a", 1, "restart"), cell("", 1, "continue"))
FILES: Mapping[str, bytes] = {
    "a.txt": "One. “Two,” said Ann.\n\nChapter 2\n\nNoël.".encode("utf-16"),
    "a.md": b"---\ntitle: x\ntags: [a, b]\n---\n# One\n\ntext\n\n## Two\n\n```\ncode\n```\n",
    "a.html": b"<html><title>T</title><body><h1>A</h1><p>x &amp; y<table><tr><td>c</table></html>",
    "a.py": b"import os\n\nclass A(B):\n    def f(self, x):\n        return os.g(x)\n",
    "a.js": b"import x from 'y'\nclass A { f() { return g(`${x}`) } }\n",
    "a.pdf": pdf("First page.", "Second page.", title="The Ledger"),
    "a.docx": docx_of(f"<w:p><w:r><w:t>Text.</w:t></w:r></w:p>{TABLE}"),
    "a.csv": csv_file(";"),
    "a.xlsx": xlsx_file(),
    "a.pptx": pptx_file(),
    "a.epub": epub_file(),
    "b.epub": epub_file(2),
}


def inside(data: bytes, changes: list[tuple[float, int, bytes, bool]], which: int) -> bytes:
    """Return a zip with one of its files changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as usual, zipfile.ZipFile(out, "w") as archive:
        for n, name in enumerate(usual.namelist()):
            content = usual.read(name)
            is_it = n == which % len(usual.namelist())
            archive.writestr(name, spoiled(content, changes) if is_it else content)
    return out.getvalue()


def read_file(name: str, data: bytes) -> None:
    try:
        document = from_bytes(data, name)
    except QrmemError as exc:
        refused(exc)
        return
    assert document.text.strip()
    assert document.text.encode()
    assert all(0 <= part.start < len(document.text) for part in document.parts)
    kept = identified(document)
    if name.endswith((".py", ".js")):
        outline(kept.text, str(kept.metadata[CODE_KEY]))


@pytest.mark.parametrize("name", FILES)
@FEW
@given(changes=CHANGES)
def test_any_file_is_read_or_refused(name: str, changes: Any) -> None:
    read_file(name, spoiled(FILES[name], changes))


@pytest.mark.parametrize("name", ["a.docx", "a.xlsx", "a.pptx", "a.epub", "b.epub"])
@FEW
@given(changes=CHANGES, which=st.integers(0, 30))
def test_any_file_within_a_packed_one_is_read_or_refused(
    name: str, changes: Any, which: int
) -> None:
    read_file(name, inside(FILES[name], changes, which))


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(text=ANY_JSON, title=ANY_JSON, id=ANY_JSON, metadata=ANY_JSON)
def test_any_document_is_taken_or_refused(text: Any, title: Any, id: Any, metadata: Any) -> None:
    try:
        document = identified(Document(text, title, id, metadata))
    except QrmemError:
        return
    assert document.text.strip()
    assert document.id


# --- other files ---------------------------------------------------------------------------------

LOG = [
    {"role": "user", "content": "Hello.", "at": "2026-01-02T10:00"},
    {"role": "assistant", "content": [{"type": "text", "text": "Yes?"}], "tool_calls": []},
    {"from": "human", "value": "Where?", "name": "Ann"},
]
TRIPLES = [
    ["Ann", "met", "Bob", "d"],
    {"subject": "Bob", "relation": "saw", "object": "Ann", "passage": "d"},
]
HIPPO = {
    "docs": [
        {
            "idx": "1",
            "passage": "Title\nAnn met Bob.",
            "extracted_entities": ["Ann", "Bob"],
            "extracted_triples": [["Ann", "met", "Bob"]],
        }
    ]
}


def lines(items: list[Any]) -> bytes:
    return b"".join(json.dumps(item).encode() + b"\n" for item in items)


def dataset(task: str) -> Callable[[Path], object]:
    return lambda path: load(task, path, Corpus("own"))


OTHERS: Mapping[str, tuple[bytes, str, Callable[[Path], object]]] = {
    "chat log": (lines(LOG), "log.jsonl", lambda path: messages(str(path))),
    "chat list": (json.dumps({"messages": LOG}).encode(), "log", lambda path: messages(str(path))),
    "triples": (lines(TRIPLES), "t.jsonl", read_openie),
    "table": (b"Ann\tmet\tBob\td\nBob\tsaw\tAnn\td\n", "t.tsv", read_openie),
    "HippoRAG": (json.dumps(HIPPO).encode(), "h.json", read_openie),
    "cassette": (
        b"".join((TESTS / "cassettes/sample.jsonl").read_bytes().splitlines(keepends=True)[:4]),
        "c.jsonl",
        Replayer,
    ),
    "prices": (
        b'date = "2026-01-01"\n[models."m"]\ninput = 1.5\noutput = 2\n',
        "p.toml",
        load_prices,
    ),
    "settings": (
        b'model = "m"\nwindow = 4096\ncache = true\n[stage_models]\nreading = "n"\n',
        "s.toml",
        lambda path: Settings.from_env({}, file=path),
    ),
    "hotpotqa": ((EVAL / "hotpot.json").read_bytes(), "h.json", dataset("hotpotqa")),
    "musique": ((EVAL / "musique_full.jsonl").read_bytes(), "m.jsonl", dataset("musique")),
    "2wiki": ((EVAL / "two_wiki.json").read_bytes(), "w.json", dataset("2wikimultihopqa")),
    "quality": ((EVAL / "quality.jsonl").read_bytes(), "q.jsonl", dataset("quality")),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_any_other_file_is_read_or_refused(kind: str) -> None:
    good, name, reader = OTHERS[kind]

    @FEW
    @given(changes=CHANGES)
    def check(changes: Any) -> None:
        path.write_bytes(spoiled(good, changes))
        try:
            reader(path)
        except QrmemError as exc:
            refused(exc)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(good)
        assert reader(path)
        check()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export_whole(tmp_path_factory.mktemp("archive") / "a.qrmem")


def test_any_archive_is_imported_whole_or_leaves_nothing(archive: Path) -> None:
    """Its checksum fits what was changed: a forger can make one."""
    whole = archive.read_bytes().split(b"\n")[:-2]
    forged = archive.with_name("forged.qrmem")

    async def load_it() -> None:
        store = ReferenceStore()
        try:
            await import_archive(store, "m", forged, accept=lambda i: i, listener=lambda e: None)
        except QrmemError as exc:
            refused(exc)
            assert list(await store.namespaces()) == []
        else:
            again = forged.with_name("again.qrmem")
            await export_archive(store, "m", again, runs=True, overwrite=True)

    @given(changes=CHANGES, line=st.integers(0, len(whole) - 1))
    def check(changes: Any, line: int) -> None:
        changed = list(whole)
        changed[line] = spoiled(whole[line], changes)
        sealed(forged, changed)
        asyncio.run(load_it())

    check()


# --- what models reply ---------------------------------------------------------------------------

REPLIES = [
    kind
    for kind in vars(replies).values()
    if isinstance(kind, type) and issubclass(kind, replies.Reply) and kind is not replies.Reply
]
GOOD = {
    "entities": ["Ann|PERSON"],
    "relations": ["Ann|met|Bob"],
    "questions": ["Who?"],
    "passages": [{"n": 1, "entities": []}],
    "answer": "Ann",
    "action": 2,
    "reasoning": "Action: -2",
}


@given(kind=st.sampled_from(REPLIES), changes=CHANGES)
def test_any_reply_is_read_or_refused(kind: type[replies.Reply], changes: Any) -> None:
    text = spoiled(json.dumps(GOOD).encode(), changes).decode("utf-8", "surrogateescape")
    try:
        assert isinstance(parse_model(text, kind).value, kind)
    except ModelOutputError as exc:
        said(exc)
    for is_asked in (False, True):
        assert isinstance(kind.from_words(text, is_asked=is_asked), kind | None)


COMPLETION = {
    "model": "m",
    "choices": [
        {
            "message": {"content": "yes", "refusal": None},
            "finish_reason": "stop",
            "logprobs": {"content": [{"token": "yes", "logprob": -0.1}]},
        }
    ],
    "usage": {
        "prompt_tokens": 5,
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 0},
    },
}
VECTORS = {"data": [{"index": 0, "embedding": [0.1, 0.2]}], "usage": {"prompt_tokens": 3}}
DELTA = {"choices": [{"delta": {"content": '{"a": "b"}'}, "finish_reason": None}]}
ENDED = {"choices": [{"delta": {}, "finish_reason": "stop", "logprobs": {"content": []}}]}


def values_changed(value: Any) -> Iterator[Any]:
    """Yield a value with each of its parts replaced by others of all kinds."""
    yield from (None, True, -1, 10**30, 1e308, "x", "\ud800", [], [[None]], {}, {"a": {}})
    if isinstance(value, dict):
        for key in value:
            yield {k: v for k, v in value.items() if k != key}
            yield from ({**value, key: inner} for inner in values_changed(value[key]))
    elif isinstance(value, list):
        for at in range(len(value)):
            yield from ([*value[:at], v, *value[at + 1 :]] for v in values_changed(value[at]))


def test_an_answer_with_any_part_of_another_kind_is_read_or_none() -> None:
    for body in map(json.dumps, values_changed(COMPLETION)):
        reply = read_completion(body, "m", 0.0)
        assert reply is None or reply.text.encode() is not None
        assert reply is None or 0 <= reply.tokens_in + reply.tokens_out < 2**62
    for body in map(json.dumps, values_changed(VECTORS)):
        read_embeddings(body)


@given(changes=CHANGES)
def test_any_body_is_read_or_none(changes: Any) -> None:
    body = spoiled(json.dumps(COMPLETION).encode(), changes).decode("utf-8", "replace")
    read_completion(body, "m", 0.0)
    read_embeddings(spoiled(json.dumps(VECTORS).encode(), changes).decode("utf-8", "replace"))


async def _streamed(body: bytes) -> None:
    async with openai.AsyncOpenAI(api_key="k") as client:
        answer = import_module(type(client.base_url).__module__).Response(200, content=body)
        events = openai.AsyncStream(cast_to=object, response=answer, client=client)
        await _joined(events)


async def _joined(events: AsyncIterator[object]) -> None:
    fields = Fields()

    def take(piece: str) -> None:
        list(fields.feed(piece))

    try:
        read_completion(await joined(events, take), "m", 0)
    except (StreamBroken, openai.APIError) as exc:
        said(exc)


@given(changes=CHANGES)
def test_any_stream_is_joined_or_broken(changes: Any) -> None:
    good = f"data: {json.dumps(DELTA)}\n\ndata: {json.dumps(ENDED)}\n\ndata: [DONE]\n"
    asyncio.run(_streamed(spoiled(good.encode(), changes)))


def test_a_stream_with_any_part_of_another_kind_is_joined_or_broken() -> None:
    for event in values_changed(DELTA):
        asyncio.run(
            _streamed(f"data: {json.dumps(event)}\n\ndata: {json.dumps(ENDED)}\n\n".encode())
        )


ANSWER = {"error": {"message": "model not found", "code": "x"}}
SERVER = endpoint(Settings(model="m", base_url="http://127.0.0.1:9/v1"))


@given(
    status=st.integers(300, 599),
    changes=CHANGES,
    header=st.text(st.characters(codec="latin-1"), max_size=30) | st.sampled_from(["1e400", "-5"]),
)
def test_any_refusal_is_one_line(status: int, changes: Any, header: str) -> None:
    body = spoiled(json.dumps(ANSWER).encode(), changes).decode("utf-8", "replace")
    headers = {"retry-after": header, "date": header}
    refused(from_status(status, body, headers, SERVER, "m"))
    wait = retry_after(headers)
    assert wait is None or wait >= 0
