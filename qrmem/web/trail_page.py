"""A trail as one HTML file to send or print; it has no scripts and loads nothing."""

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

from qrmem.types import ScoredSegment, Segment, Step, Trail

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
