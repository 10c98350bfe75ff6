"""Prompts that begin alike: a server that caches them is paid less, and the ledger says so."""

from pathlib import Path

import pytest
from servers.openai_server import serving

import qrmem
from qrmem.types import BuildMode

SAMPLE = Path(qrmem.__file__).parent / "sample" / "harbour.md"
DOCUMENT = {"id": "book", "text": "## ".join(SAMPLE.read_text().split("## ")[:6])}
PRICES = 'date = "2031-01-01"\n[models."test"]\ninput = 10.0\noutput = 40.0\ncached = 1.0\n'


@pytest.mark.parametrize(("mode", "least"), [("compact", 0.1), ("paper", 0.2)])
async def test_tokens_that_a_server_had_cached_are_in_the_ledger_and_cost_less(
    tmp_path: Path, mode: BuildMode, least: float
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES)
    async with (
        serving(caches=True) as server,
        qrmem.open(
            "memory://",
            model="test",
            base_url=server.url,
            embedder="none",
            mode=mode,
            prices=str(prices),
        ) as memory,
    ):
        report = await memory.add(DOCUMENT)
        (first, *rows) = await memory.usage(by="run")
        stats = server.stats
    assert not rows
    assert first.cached_tokens == stats.cached_tokens
    assert stats.cached_tokens > least * stats.tokens_in, "prompts put what never changes first"
    fresh = stats.tokens_in - stats.cached_tokens
    money = (10 * fresh + stats.cached_tokens + 40 * stats.tokens_out) / 1_000_000
    assert first.cost == pytest.approx(money)
    spent = report.usage.construction.values()
    assert sum(stage.cached_tokens for stage in spent) == stats.cached_tokens
