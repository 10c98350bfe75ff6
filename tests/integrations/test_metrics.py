"""`GET /metrics` of `qrmem serve`, as Prometheus reads it."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from integrations.conftest import Served
from integrations.test_jobs import DOCUMENTS, ended
from integrations.test_tokens import client, row
from prometheus_client.parser import text_string_to_metric_families
from servers.openai_server import OpenAIServer, in_thread

from qrmem.errors import UsageError
from qrmem.web.guard import grants

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with in_thread(OpenAIServer()) as server:
        yield server


def read(requests: httpx.Client) -> Samples:
    reply = requests.get("/metrics")
    assert reply.is_success
    assert reply.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(reply.text)
        for sample in family.samples
    }


def of(samples: Samples, name: str, **labels: str) -> float:
    wanted = frozenset(labels.items())
    return sum(v for (known, has), v in samples.items() if known == name and wanted <= has)


def test_requests_calls_and_jobs_are_counted_without_texts_and_names(
    served: Served, model: OpenAIServer
) -> None:
    words = ["--write", "--model", "test", "--base-url", model.url, "--embedder", "none"]
    with served("serve", *words) as url, httpx.Client(base_url=url, timeout=60) as requests:
        job = requests.post("/jobs", json={"documents": DOCUMENTS[:3]}).json()
        ended(requests, job["id"])
        turn = {"role": "user", "text": "I live in Rome.", "user": "ann"}
        assert requests.post("/turns", json=turn).is_success
        for id in ("d00", "d01", "nobody"):
            requests.get(f"/documents/{id}")
        requests.get("/secret/path")
        requests.request("BREW", "/status")
        found = read(requests)

        route = "/documents/{id:whole}"
        assert of(found, "qrmem_requests_total", route=route, status="200", method="GET") == 2
        assert of(found, "qrmem_requests_total", route=route, status="404") == 1
        assert of(found, "qrmem_request_seconds_count", route=route) == 3
        assert of(found, "qrmem_requests_total", method="other") == 1
        assert of(found, "qrmem_requests_running") == 1  # this one
        chat = {"model": "test", "outcome": "ok"}
        assert of(found, "qrmem_model_calls_total", **chat) == model.stats.requests > 0
        assert of(found, "qrmem_model_tokens_total", kind="prompt") > 0
        assert of(found, "qrmem_segments_read_total") >= 3
        assert of(found, "qrmem_jobs", state="done") == 1
        assert of(found, "process_resident_memory_bytes") > 1e6
        text = requests.get("/metrics").text
        for private in ("ann", "Rome", "d00", "secret", "BREW", job["id"], "default"):
            assert private not in text, private


def test_a_token_of_metrics_reads_them_and_no_memory(served: Served, tmp_path: Path) -> None:
    table = tmp_path / "tokens.toml"
    table.write_text(
        row("scraper", metrics=True) + row("all", write=True) + row("of-ann", user="ann")
    )
    with (
        served("serve", "--tokens", str(table), text="Ada met Babbage in London.") as url,
        client(url, "scraper") as scraper,
        client(url, "all") as everybody,
        client(url, "of-ann") as ann,
    ):
        assert httpx.get(f"{url}/metrics").status_code == 401
        for refused in (everybody.get("/metrics"), ann.get("/metrics")):
            assert refused.status_code == 403
            assert "a token with `metrics = true` in the table does" in refused.json()["error"]
        assert everybody.get("/documents").is_success
        found = read(scraper)
        assert of(found, "qrmem_requests_total", route="/documents", status="200") == 1
        assert of(found, "qrmem_requests_total", status="401", route="none") == 1
        for method, path in (("GET", "/documents"), ("GET", "/jobs"), ("POST", "/metrics")):
            assert scraper.request(method, path).status_code == 404
        assert httpx.get(f"{url}/docs").is_success  # of the first token that opens a memory


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (row("a", metrics=True), "no token opens a memory"),
        (
            row("a") + row("b", metrics=True, user="ann"),
            "token 2: metrics = true allows no other key",
        ),
    ],
)
def test_a_token_of_metrics_stands_alone(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "tokens.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        grants(path, "default")
