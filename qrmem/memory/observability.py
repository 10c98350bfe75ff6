"""Report the events of a run to operators: lines of the logger `qrmem`, OpenTelemetry spans.

Spans have the names of OpenTelemetry's conventions for generative AI. They need the extra `otel`;
without it, or without a tracer provider, there are none. Spans contain no text of documents,
questions or replies, unless `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT` enables it.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

from qrmem.config import captures_content
from qrmem.llm.embedders import STAGE as EMBEDDING
from qrmem.types import Event, Message

T = TypeVar("T")

logger = logging.getLogger("qrmem")
# A library logs nothing by default: without this, warnings would go to standard error.
logger.addHandler(logging.NullHandler())

_LEVELS: Mapping[str, int] = {
    "warning": logging.WARNING,
    "phase": logging.INFO,
    "document": logging.INFO,
    "step": logging.INFO,
    "call": logging.DEBUG,
    "segment": logging.DEBUG,
}
_CONTENT = ("messages", "reply")
"""Fields of a call's event that only captured content has; the log never has them."""
_NOT_SENT = "cached"
_REPLIES = frozenset(["ok", "repaired", "unparsable"])


@contextmanager
def run(operation: str, asked: str = "", **attributes: str) -> Iterator[Callable[[str], None]]:
    """Put a span around one `add`, `ask` or `reembed`; model calls and steps are inside it.

    Args:
        asked: the question.

    Yields:
        A function that takes the answer.
    """
    trace = _opentelemetry()
    if trace is None:
        yield lambda answer: None
        return
    span_attributes = {f"qrmem.{name}": value for name, value in attributes.items() if value}
    if operation == "ask":
        span_attributes |= {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "qrmem"}
    name = "invoke_agent qrmem" if operation == "ask" else f"qrmem.{operation}"
    # An error's message can quote a reply or a document, so the span has only its class.
    with trace.get_tracer("qrmem").start_as_current_span(
        name, attributes=span_attributes, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield lambda answer: span.set_attributes(_question_content(asked, answer))
        except Exception as exc:
            span.set_attribute("error.type", type(exc).__name__)
            span.set_status(trace.StatusCode.ERROR)
            raise


async def in_one_context(items: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Yield the items of a generator that runs in one context from start to end.

    A generator runs in the context of the caller that asks for its next item. A span that it opens
    would be current there, too, and would be lost if another task asks for the item after it.
    """
    context = copy_context()
    try:
        while True:
            yield await asyncio.create_task(anext(items), context=context)
    except StopAsyncIteration:
        return
    finally:
        await asyncio.create_task(items.aclose(), context=context)


def observe(event: Event) -> None:
    """Log one event of a run, and make a span of it if it is a call or a step."""
    _log(event)
    _trace_event(event)


def _log(event: Event) -> None:
    """Log one event; streamed words of a reply are not logged."""
    level = _LEVELS.get(event.kind)
    if level is not None and logger.isEnabledFor(level):
        data = {name: value for name, value in event.data.items() if name not in _CONTENT}
        logger.log(level, "%s", _line(event), extra={"event": event.kind, "data": data})


def _line(event: Event) -> str:
    data = event.data
    if event.kind == "warning":
        return str(data.get("message", ""))
    if event.kind == "call":
        return (
            f"{data['stage']} by {data['model']}: {data['tokens_in']} + {data['tokens_out']} "
            f"tokens, {data['seconds']:.2f} s, {data['outcome']}"
        )
    if event.kind == "step":
        step = data["step"]
        read = f", {len(step.read)} read" if step.read else ""
        return f"step {step.n}: {step.action}{read} {step.verdict}".rstrip()
    return f"{event.kind}: " + ", ".join(_event_lines(data))


def _event_lines(data: Mapping[str, Any]) -> list[str]:
    return [f"{name} {value}" for name, value in data.items() if value not in ("", None)]


def _trace_event(event: Event) -> None:
    """Make a span, which ends now, of a call or a step."""
    if (trace := _opentelemetry()) is None:
        return
    if event.kind == "call" and event.data["outcome"] != _NOT_SENT:
        data = event.data
        operation = "embeddings" if data["stage"] == EMBEDDING else "chat"
        name = f"{operation} {data['model']}"
        _end(trace, name, _of_call(operation, data), data["seconds"], "CLIENT")
    elif event.kind == "step":
        step = event.data["step"]
        attributes = {
            "qrmem.step": step.n,
            "qrmem.action": step.action,
            "qrmem.verdict": step.verdict,
            "qrmem.segments.read": len(step.read),
            "qrmem.segments.dropped": len(step.dropped),
            # Not `gen_ai.usage`: a sum over it would count the step's calls twice.
            "qrmem.tokens": step.tokens,
        }
        _end(trace, f"qrmem.step {step.action}", attributes, step.seconds, "INTERNAL")


def _of_call(operation: str, data: Mapping[str, Any]) -> dict[str, Any]:
    failed = {} if data["outcome"] in _REPLIES else {"error.type": data["outcome"]}
    return {
        "gen_ai.operation.name": operation,
        # The name of the protocol, whatever server speaks it.
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": data["model"],
        "gen_ai.usage.input_tokens": data["tokens_in"],
        "gen_ai.usage.output_tokens": data["tokens_out"],
        "qrmem.stage": data["stage"],
        "qrmem.prompt": data["prompt"],
        "qrmem.segment": data["segment"],
        "qrmem.attempts": data["attempts"],
        "qrmem.outcome": data["outcome"],
        **failed,
        **(_content(data["messages"], data["reply"]) if "messages" in data else {}),
    }


def _content(messages: Sequence[Message], reply: str) -> dict[str, str]:
    """Return the messages of a call in the form of the conventions; none unless enabled."""
    if not captures_content():
        return {}
    messages_shown = [_message_content(message.role, message.content) for message in messages]
    answered = {**_message_content("assistant", reply), "finish_reason": "stop"}
    return {
        "gen_ai.input.messages": json.dumps(messages_shown, ensure_ascii=False),
        **({"gen_ai.output.messages": json.dumps([answered], ensure_ascii=False)} if reply else {}),
    }


def _question_content(question: str, answer: str) -> dict[str, str]:
    """Return a question or an answer as messages, and in the form that trace viewers list."""
    content = _content([Message("user", question)], answer)
    return {**content, "input.value": question, "output.value": answer} if content else {}


def _message_content(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _end(trace: Any, name: str, attributes: Mapping[str, Any], seconds: float, kind: str) -> None:
    now = time.time_ns()
    end_attributes = {key: value for key, value in attributes.items() if value not in ("", None)}
    span = trace.get_tracer("qrmem").start_span(
        name,
        attributes=end_attributes,
        kind=trace.SpanKind[kind],
        start_time=now - int(seconds * 1e9),
    )
    if "error.type" in end_attributes:
        span.set_status(trace.StatusCode.ERROR)
    span.end(now)


@cache
def _opentelemetry() -> Any:
    """Return `opentelemetry.trace`, or `None` if the extra is not installed."""
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace


__all__ = ["in_one_context", "logger", "observe", "run"]
