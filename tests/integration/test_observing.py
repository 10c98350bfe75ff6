"""Observers of a run get the same events: logging, OpenTelemetry, a listener."""

import asyncio
import gc
import logging
import subprocess
import sys
from collections.abc import Sequence

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from servers.faults import Faults
from servers.openai_server import serving

import qrmem
from qrmem import sync
from qrmem.errors import ModelUnavailable, ModelUnusable, UsageError
from qrmem.types import Event

TEXT = "Ahab lost a leg near Japan. He hunts the whale. Ishmael sailed with Queequeg."
QUESTION = "Who lost a leg near Japan?"
EXPORTER = InMemorySpanExporter()


@pytest.fixture(scope="module", autouse=True)
def _provider() -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(EXPORTER))
    trace.set_tracer_provider(provider)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    EXPORTER.clear()


async def run(faults: Faults | None = None) -> list[Event]:
    events: list[Event] = []
    async with serving(faults=faults) as server:
        chosen = qrmem.Settings(model="test", base_url=server.url, embedder="none", retries=0)
        async with qrmem.open("memory://", settings=chosen, listener=events.append) as memory:
            await memory.add(qrmem.Document(TEXT, "Whales", "w"))
            await memory.ask(QUESTION, strategy="reflection")
    return events


def named(name: str) -> Sequence[ReadableSpan]:
    return [span for span in EXPORTER.get_finished_spans() if span.name == name]


async def test_runs_steps_and_calls_are_spans_named_by_the_conventions() -> None:
    events = await run()
    (added,), (asked,) = named("qrmem.add"), named("invoke_agent qrmem")
    calls = named("chat test")
    assert len(calls) == sum(event.kind == "call" for event in events) > 1
    inside = {span.parent.span_id for span in calls if span.parent}
    assert inside == {added.context.span_id, asked.context.span_id}
    (judged,) = [span for span in calls if (span.attributes or {})["qrmem.stage"] == "judge"]
    attributes = judged.attributes or {}
    assert judged.kind is trace.SpanKind.CLIENT
    assert attributes["gen_ai.operation.name"] == "chat"
    assert attributes["gen_ai.provider.name"] == "openai"
    assert attributes["gen_ai.request.model"] == "test"
    (call,) = [e.data for e in events if e.kind == "call" and e.data["stage"] == "judge"]
    assert attributes["gen_ai.usage.input_tokens"] == call["tokens_in"] > 0
    assert attributes["gen_ai.usage.output_tokens"] == call["tokens_out"] > 0
    assert judged.end_time is not None
    assert judged.start_time is not None
    assert (judged.end_time - judged.start_time) / 1e9 == pytest.approx(call["seconds"], abs=1e-3)
    steps = [span for span in EXPORTER.get_finished_spans() if span.name.startswith("qrmem.step")]
    assert len(steps) == sum(event.kind == "step" for event in events) > 0
    assert (asked.attributes or {})["qrmem.strategy"] == "reflection"


async def test_no_span_holds_what_a_text_a_question_or_a_reply_says() -> None:
    await run()
    told = str([(s.name, dict(s.attributes or {})) for s in EXPORTER.get_finished_spans()])
    assert "Ahab" not in told
    assert "Japan" not in told


async def test_a_span_that_fails_does_not_quote_what_the_model_said() -> None:
    async with serving(obeys_forms=False) as server:
        chosen = qrmem.Settings(model="test", base_url=server.url, embedder="none", retries=0)
        async with qrmem.open("memory://", settings=chosen, shared_tokens=0) as memory:
            texts = [{"id": f"d{n}", "text": f"Ann{n} met Bob{n} in Rome."} for n in range(40)]
            with pytest.raises(ModelUnusable, match="the last begins"):
                await memory.add(texts)
    (added,) = named("qrmem.add")
    assert not added.status.is_ok
    assert (added.attributes or {})["error.type"] == "ModelUnusable"
    assert not added.events
    assert not added.status.description


async def test_a_failed_call_is_a_span_with_its_error() -> None:
    with pytest.raises(ModelUnavailable):
        await run(Faults(always="500"))
    (call,) = named("chat test")
    assert (call.attributes or {})["error.type"] == "ModelUnavailable"
    assert not call.status.is_ok
    (added,) = named("qrmem.add")
    assert not added.status.is_ok


async def test_the_logger_reports_events_to_every_handler(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, logger="qrmem"):
        events = await run(Faults(script={2: "nonsense"}))
    lines = [record.getMessage() for record in caplog.records if record.name == "qrmem"]
    calls = [line for line in lines if " by test: " in line]
    assert len(calls) == sum(event.kind == "call" for event in events)
    assert any(line.endswith("unparsable") for line in calls)
    assert any(line.startswith("step 1: start") for line in lines)
    assert "Japan" not in "".join(lines)


async def test_a_second_listener_does_not_make_anything_happen_twice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first: list[Event] = []
    second: list[Event] = []
    async with (
        serving() as server,
        qrmem.open(
            "memory://",
            settings=qrmem.Settings(model="test", base_url=server.url, embedder="none"),
            listener=first.append,
        ) as memory,
    ):
        with caplog.at_level(logging.DEBUG, logger="qrmem"):
            await memory.listening(second.append).add(qrmem.Document(TEXT, "Whales", "w"))
    assert first == second != []
    calls = sum(event.kind == "call" for event in first)
    assert sum(" by test: " in record.getMessage() for record in caplog.records) == calls
    assert len(named("chat test")) == calls


SCRIPT = """
import asyncio, logging, sys
sys.modules["opentelemetry"] = None
import qrmem

async def main():
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(qrmem.Document("Ann Lee met Bob Hale in Rome.", "A", "a"))
        print((await memory.ask("Who met Bob Hale?")).status)

asyncio.run(main())
"""


def test_without_opentelemetry_and_without_logging_nothing_is_reported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "passages"


async def test_a_stream_that_is_left_at_its_answer_has_closed_its_span(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(qrmem.Document(TEXT, "Whales", "w"))
        async for item in memory.stream(QUESTION):
            if isinstance(item, qrmem.Answer):
                break
        assert named("invoke_agent qrmem")
        gc.collect()
        await asyncio.sleep(0.05)
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]


async def test_the_span_of_a_stream_is_not_current_where_the_stream_is_read() -> None:
    async with qrmem.open("memory://", embedder="none") as memory:
        await memory.add(qrmem.Document(TEXT, "Whales", "w"))
        before = trace.get_current_span()
        async for _ in memory.stream(QUESTION, strategy="reflection"):
            assert trace.get_current_span() is before


def test_all_steps_of_a_stream_without_await_are_inside_its_span(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with sync.open("memory://", embedder="none") as memory:
        memory.add(qrmem.Document(TEXT, "Whales", "w"))
        steps = [item for item in memory.stream(QUESTION, strategy="reflection")][:-1]
        (asked,) = named("invoke_agent qrmem")
        inside = [s for s in EXPORTER.get_finished_spans() if s.name.startswith("qrmem.step")]
        assert len(inside) == len(steps) > 1
        assert {span.parent and span.parent.span_id for span in inside} == {asked.context.span_id}
        left = memory.stream(QUESTION, strategy="reflection")
        next(left)
        left.close()  # type: ignore[attr-defined]
        assert len(named("invoke_agent qrmem")) == 2
        kept = memory.stream(QUESTION, strategy="reflection")
        next(kept)
    assert len(named("invoke_agent qrmem")) == 3
    with pytest.raises(UsageError, match="closed"):
        next(kept)
    gc.collect()
    assert not [one for one in caplog.records if one.name.startswith(("opentelemetry", "asyncio"))]
