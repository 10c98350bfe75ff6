"""Spans as a collector gets them: the example of the docs, sent by OTLP to a server here."""

import asyncio
import gzip
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from servers.loopback import served
from servers.openai_server import serving

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "traced.py"
QUESTION = "Whom did Ada Lovelace meet?"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@contextmanager
def collecting() -> Iterator[tuple[str, list[Any]]]:
    """A server that takes OTLP over HTTP; yields its address and the spans that it got."""
    spans: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            data = gzip.decompress(data) if self.headers["Content-Encoding"] == "gzip" else data
            for resource in ExportTraceServiceRequest.FromString(data).resource_spans:
                for scope in resource.scope_spans:
                    spans.extend(scope.spans)
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, *_: object) -> None:
            pass

    with served(Handler) as address:
        yield address, spans


async def traced(tmp_path: Path, **env: str) -> list[Any]:
    """Run the example with a chat model; return the spans that came."""
    with collecting() as (address, spans):
        async with serving() as model:
            given = {
                "HOME": str(tmp_path),
                "OTEL_EXPORTER_OTLP_ENDPOINT": address,
                "QRMEM_MODEL": "test",
                "OPENAI_BASE_URL": model.url,
                "QRMEM_EMBEDDER": "none",
            }
            kept = {k: v for k, v in os.environ.items() if not k.startswith(("QRMEM_", "OTEL_"))}
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                EXAMPLE,
                cwd=tmp_path,
                env=kept | given | env,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    assert out.strip()
    return spans


def attributes(span: Any) -> Mapping[str, Any]:
    return {
        one.key: getattr(one.value, one.value.WhichOneof("value") or "") for one in span.attributes
    }


async def test_a_collector_gets_runs_and_calls_without_what_they_say(tmp_path: Path) -> None:
    spans = await traced(tmp_path)
    (asked,) = [span for span in spans if span.name == "invoke_agent qrmem"]
    calls = [span for span in spans if span.name == "chat test"]
    inside = [span for span in calls if span.parent_span_id == asked.span_id]
    assert len(calls) > len(inside) > 0
    tokens = "gen_ai.usage.input_tokens"
    assert all(attributes(call)[tokens] > 0 for call in calls)
    assert not [span.name for span in spans if span not in calls and tokens in attributes(span)]
    assert "Lovelace" not in str(spans)


@pytest.mark.parametrize("chosen", ["SPAN_ONLY", "true"])
async def test_content_is_sent_where_it_is_asked_for(tmp_path: Path, chosen: str) -> None:
    spans = await traced(tmp_path, **{CAPTURE: chosen})
    (asked,) = [attributes(span) for span in spans if span.name == "invoke_agent qrmem"]
    (said,) = json.loads(asked["gen_ai.input.messages"])
    assert said == {"role": "user", "parts": [{"type": "text", "content": QUESTION}]}
    (answered,) = json.loads(asked["gen_ai.output.messages"])
    assert answered["parts"][0]["content"] == asked["output.value"]
    assert asked["input.value"] == QUESTION
    for call in (attributes(span) for span in spans if span.name == "chat test"):
        prompt = json.loads(call["gen_ai.input.messages"])
        assert [message["role"] for message in prompt][-1] == "user"
        assert "Lovelace" in str(prompt)
        assert json.loads(call["gen_ai.output.messages"])[0]["parts"][0]["content"]


@pytest.mark.parametrize("chosen", ["", "NO_CONTENT", "EVENT_ONLY", "false"])
async def test_nothing_else_asks_for_content(tmp_path: Path, chosen: str) -> None:
    assert "Lovelace" not in str(await traced(tmp_path, **{CAPTURE: chosen}))
