"""The sample's cassette: reading and answering with a chat model, and no network at all."""

from e2e.conftest import SAMPLE, Shell
from record_sample import CASSETTE, QUESTION

NO_ROUTE = "http://127.0.0.1:9/v1"
"""Nothing listens there: whatever were sent would fail."""


def test_the_sample_is_read_and_asked_out_of_its_cassette(qrmem: Shell) -> None:
    replay = ["--replay", str(CASSETTE), "--base-url", NO_ROUTE]
    ran = qrmem("add", str(SAMPLE / "harbour.md"), "--json", *replay)
    hint = "prompts have changed: PYTHONPATH=tests python tests/record_sample.py"
    assert ran.code == 0, f"{ran.err}\n{hint}"
    assert ran.json["states"] == {"ok": 32}
    asked = qrmem("ask", QUESTION, "--json", *replay)
    assert asked.code == 0, f"{asked.err}\n{hint}"
    answer = asked.json
    assert answer["status"] == "answered"
    assert "Herring Key" in answer["text"]
    text = (SAMPLE / "harbour.md").read_text()
    for citation in answer["citations"]:
        assert citation["quote"] == text[citation["start"] : citation["end"]]
    stages = {row["key"]: row["models"] for row in qrmem("usage", "--json").json}
    assert stages["extract"] == ["test"]
    unknown = qrmem("ask", "What is the cutter of Martin Fenwick called?", *replay)
    assert unknown.code == 2
    assert "has no reply to this judge request" in unknown.err


def test_the_cassette_holds_neither_a_key_nor_an_address() -> None:
    text = CASSETTE.read_text()
    for word in ("Authorization", "authorization", "Bearer", "http://", "api_key"):
        assert word not in text
