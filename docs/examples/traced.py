"""Send the spans of a run by OTLP to Phoenix, Langfuse or any collector: see docs/watching.md."""

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

import qrmem

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)

with qrmem.sync.open("memory://") as memory:
    memory.add_text("Ada Lovelace met Charles Babbage in London in 1833.", id="note")
    print(memory.ask("Whom did Ada Lovelace meet?", strategy="reflection").text)

provider.shutdown()  # sends the remaining spans
