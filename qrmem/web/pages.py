"""Pages: a memory (`qrmem view`), only for the person at this machine; a trail as one file.

The first page's own files need no token; everything from the memory does. The token is in the
fragment (`#`) of the address, which no log contains. Neither page loads anything from other sites.
"""

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from qrmem.memory import Memory
from qrmem.types import ScoredSegment, Segment, Step, Strategy, Trail
from qrmem.web.api import api
from qrmem.web.changing import deciding
from qrmem.web.guard import Guard, digest

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

FOLDER = Path(__file__).parent / "page"
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def view(
    memory: Memory,
    token: str,
    hosts: tuple[str, ...],
    *,
    ask: bool = False,
    write: bool = False,
) -> "ASGIApp":
    """Return the app of the page, with the routes that it uses.

    Args:
        memory: an open memory.
        token: the token that the page sends with each request.
        hosts: allowed values of the header `Host`, against DNS rebinding.
        ask: offer questions, which may call the chat model.
        write: offer to merge names and to edit statements.
    """
    app: Any = api(memory, ask=ask)  # raises the error about the missing extra
    from starlette.responses import FileResponse
    from starlette.staticfiles import StaticFiles

    if write:
        deciding(app, memory)

    async def index() -> FileResponse:
        return FileResponse(FOLDER / "index.html")

    async def allowed() -> dict[str, Any]:
        return {"ask": ask, "write": write, "strategies": get_args(Strategy)}

    app.get("/", include_in_schema=False)(index)
    app.get("/allowed", include_in_schema=False)(allowed)
    app.mount("/page", StaticFiles(directory=FOLDER))
    return _with_headers(Guard({digest(token): app}, open_paths=("/", "/page/"), hosts=hosts))


def _with_headers(app: "ASGIApp") -> "ASGIApp":
    added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def call(scope: "Scope", receive: "Receive", send: "Send") -> None:
        async def sent(message: "Message") -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        await app(scope, receive, sent)

    return call


# --- A trail as one HTML file to send or print; it has no scripts and loads nothing


_STYLE = Path(__file__).parent / "page" / "page.css"
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def trail_page(trail: Trail, segments: Mapping[str, Segment], reader: str) -> str:
    """Return the HTML page of a trail.

    Args:
        trail: the recorded run.
        segments: segment id to segment, for those of the trail that still exist.
        reader: the model or rules that answered, as text.
    """
    style = _STYLE.read_text(encoding="utf-8")
    about = [trail.strategy, f"window {trail.window}", trail.status, reader, trail.created]
    lines = [
        '<!doctype html><html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
        f"<title>{escape(trail.question)}</title><style>{style}</style></head><body><main>",
        f"<h1>{escape(trail.question)}</h1>",
        f'<p class="about">{escape(" · ".join(filter(None, about)))}</p>',
        f'<blockquote class="answer">{escape(trail.answer)}</blockquote>' if trail.answer else "",
        '<h2>Step by step</h2><ol class="steps">',
        *(line for step in trail.steps for line in _step(step, segments)),
        '</ol><h2>Citations</h2><ul class="plain cited">',
        *(f"<li><blockquote>{escape(cited.quote)}</blockquote></li>" for cited in trail.citations),
        "</ul></main></body></html>",
    ]
    return "\n".join(filter(None, lines)) + "\n"


def _step(step: Step, segments: Mapping[str, Segment]) -> Iterator[str]:
    yield f"<li><strong>{escape(step.action)}</strong> {escape(step.verdict)}"
    yield f'<span class="quiet">{step.tokens} tokens, {step.seconds:.2f} s</span>'
    if step.reason:
        yield f"<p>{escape(step.reason)}</p>"
    if step.entities:
        yield f'<p class="small">At {escape(", ".join(step.entities))}</p>'
    for edge in step.edges:
        kind, taken_in_words = ("", "taken") if edge.taken else (" left", "not taken")
        yield f'<div class="scored{kind}"><span>{edge.score:.3f}</span>'
        yield f"<span>{taken_in_words}: {escape(edge.description)}</span></div>"
    for kind, scored in (("read", step.read), ("dropped", step.dropped)):
        for one in scored:
            yield f"<div>{_segment(kind, one, segments.get(one.segment_id))}</div>"
    if step.memory:
        yield f'<p class="small">Noted:</p><blockquote>{escape(step.memory)}</blockquote>'
    yield "</li>"


def _segment(kind: str, scored: ScoredSegment, segment: Segment | None) -> str:
    if segment is None:
        return f"{kind}: {escape(scored.segment_id)}, which is deleted"
    about = (
        segment.document_id,
        segment.part,
        f"characters {segment.start}-{segment.end}",
        f"score {scored.score:.3f}",
        scored.via,
    )
    what = "dropped: no room in the window" if kind == "dropped" else kind
    head = f'<span class="chip {kind}">{what}</span> <span class="quiet small">'
    text_shown = escape(" · ".join(filter(None, about)))
    return (
        f'{head}{text_shown}</span><blockquote class="{kind}">{escape(segment.text)}</blockquote>'
    )
