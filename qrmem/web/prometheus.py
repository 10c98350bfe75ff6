"""`GET /metrics` of `qrmem serve`: counts and times for Prometheus, without texts or user names.

Labels have few values: a route's template as in `/docs`, not the path of the request.
"""

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

from qrmem.errors import require_extra
from qrmem.types import Event

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.responses import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PATH = "/metrics"
_METHODS = frozenset(["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"])
_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


class Metrics:
    """The metrics of one server; it is a listener of the server's memories."""

    def __init__(self) -> None:
        """Set all counts to 0.

        Raises:
            MissingError: the extra `serve` is not installed.
        """
        require_extra("serve", "a REST service", "prometheus_client")
        from prometheus_client import (
            CollectorRegistry,
            Counter,
            Gauge,
            Histogram,
            ProcessCollector,
        )

        self._registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)

        def counter(name: str, what: str, *labels: str) -> Counter:
            return Counter(f"qrmem_{name}", what, labels, registry=registry)

        of_request = ("method", "route", "status")
        self._requests = counter("requests", "Answered requests", *of_request)
        self._running = Gauge("qrmem_requests_running", "Requests in progress", registry=registry)
        self._seconds = Histogram(
            "qrmem_request_seconds",
            "Seconds until the reply was complete",
            ["route"],
            registry=registry,
            buckets=_SECONDS,
        )
        self._calls = counter("model_calls", "Model calls", "stage", "model", "outcome")
        self._tokens = counter("model_tokens", "Tokens of model calls", "stage", "model", "kind")
        self._segments = counter("segments_read", "Segments read")
        self._warnings = counter("warnings", "Warnings of runs")
        self._jobs = Gauge("qrmem_jobs", "Jobs by state", ["state"], registry=registry)

    def __call__(self, event: Event) -> None:
        """Count one event of a run."""
        data = event.data
        if event.kind == "segment":
            self._segments.inc(int(data.get("count", 1)))
        elif event.kind == "warning":
            self._warnings.inc()
        elif event.kind == "call":
            about = data["stage"], data["model"]
            self._calls.labels(*about, data["outcome"]).inc()
            if data["outcome"] != "cached":
                self._tokens.labels(*about, "prompt").inc(data["tokens_in"])
                self._tokens.labels(*about, "reply").inc(data["tokens_out"])

    def page(self, jobs: Mapping[str, int]) -> bytes:
        """Return all metrics in Prometheus' text format.

        Args:
            jobs: number of jobs by state.
        """
        from prometheus_client import generate_latest

        self._jobs.clear()
        for state, count in jobs.items():
            self._jobs.labels(state).set(count)
        return bytes(generate_latest(self._registry))

    def counted(self, app: "ASGIApp") -> "ASGIApp":
        """Return an app that counts the requests of `app` and passes them on."""

        async def call(scope: "Scope", receive: "Receive", send: "Send") -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            status, began = 500, perf_counter()

            async def sent(message: "Message") -> None:
                nonlocal status
                if message["type"] == "http.response.start":
                    status = message["status"]
                await send(message)

            with self._running.track_inprogress():
                try:
                    await app(scope, receive, sent)
                finally:
                    method = scope["method"] if scope["method"] in _METHODS else "other"
                    route = getattr(scope.get("route"), "path", "none")  # FastAPI's route
                    self._requests.labels(method, route, str(status)).inc()
                    self._seconds.labels(route).observe(perf_counter() - began)

        return call


def door(page: Callable[[], bytes]) -> "ASGIApp":
    """Return the app of a token with `metrics = true`: `/metrics`, and nothing else."""
    from starlette.responses import JSONResponse

    async def call(scope: "Scope", receive: "Receive", send: "Send") -> None:
        answer: Response = JSONResponse({"error": f"this token reads only {PATH}"}, 404)
        if (scope["method"], scope["path"]) == ("GET", PATH):
            answer = _reply(page())
        await answer(scope, receive, send)

    return call


def figures(app: "FastAPI", page: Callable[[], bytes] | None) -> None:
    """Add the route `/metrics`; without `page` its reply names the tokens that may read it."""
    from starlette.responses import JSONResponse

    async def read() -> Any:
        if page is None:
            right_needed = "a token with `metrics = true` in the table does"
            return JSONResponse({"error": f"this token does not read {PATH}; {right_needed}"}, 403)
        return _reply(page())

    app.get(PATH, include_in_schema=False, response_model=None)(read)


def _reply(page: bytes) -> "Response":
    from prometheus_client import CONTENT_TYPE_LATEST
    from starlette.responses import Response

    return Response(page, media_type=CONTENT_TYPE_LATEST)
