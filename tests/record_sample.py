"""Record the cassette of the sample again, after a prompt has changed.

    PYTHONPATH=tests python tests/record_sample.py

The replies are those of the test server (`servers.openai_server`), which makes them by rules.
"""

import os
import tempfile
from pathlib import Path

from servers.openai_server import OpenAIServer, in_thread

from qrmem.cli import main

TESTS = Path(__file__).parent
CASSETTE = TESTS / "cassettes" / "sample.jsonl"
SAMPLE = TESTS.parent / "qrmem" / "sample" / "harbour.md"
QUESTION = "What did the key that Tam Garrick gave to Nell Sayle open?"


def record() -> None:
    """Read the sample and ask it one question, with every exchange written down."""
    CASSETTE.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder, in_thread(OpenAIServer()) as server:
        os.environ |= {"QRMEM_MEMORY": str(Path(folder) / "memory.db"), "QRMEM_EMBEDDER": "none"}
        words = ["--model", "test", "--base-url", server.url, "--record", str(CASSETTE), "--quiet"]
        for command in (["add", str(SAMPLE)], ["ask", QUESTION]):
            if main([*command, *words]):
                raise SystemExit(f"{command[0]} failed; the cassette is not complete")


if __name__ == "__main__":
    record()
