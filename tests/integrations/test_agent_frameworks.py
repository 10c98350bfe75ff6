"""The agents of docs/examples in the frameworks they are for, against a chat server over HTTP.

Each framework is installed in an environment of its own (.ci/frameworks). An example runs in a
process of its own, outside of the checkout: its folder `agents` is named as a package is.
"""

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from servers.tool_calling import serving

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
TEXT = "Ada Lovelace met Charles Babbage in London in 1833."
QUESTION = "Whom did Ada Lovelace meet?"
AWAITED = f"""
import asyncio, sys
import qrmem
example = __import__(sys.argv[1])

async def main():
    async with qrmem.open("memory://", embedder="none", base_url="") as memory:
        await memory.add({{"id": "note", "text": {TEXT!r}}})
        print(await example.answer({QUESTION!r}, memory))

asyncio.run(main())
"""
BLOCKING = f"""
import sys
import qrmem
example = __import__(sys.argv[1])

with qrmem.sync.open("memory://", embedder="none", base_url="") as memory:
    memory.add({{"id": "note", "text": {TEXT!r}}})
    print(example.answer({QUESTION!r}, memory))
"""


@pytest.mark.parametrize(
    ("name", "package", "program"),
    [
        ("openai_agents", "openai-agents", AWAITED),
        ("pydantic_ai_agent", "pydantic-ai-slim", AWAITED),
        ("agent_framework_agent", "agent-framework-openai", AWAITED),
        ("crewai_crew", "crewai", BLOCKING),
    ],
)
def test_an_agent_answers_with_what_the_memory_holds(
    tmp_path: Path, name: str, package: str, program: str
) -> None:
    try:
        version(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    with serving("Ada Lovelace") as (url, requests):
        quiet = {"OPENAI_AGENTS_DISABLE_TRACING": "1", "CREWAI_DISABLE_TELEMETRY": "true"}
        silent = {"CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}
        led = {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none", "PYTHONPATH": str(EXAMPLES)}
        ran = subprocess.run(
            [sys.executable, "-c", program, name],
            cwd=tmp_path,
            env=os.environ | quiet | silent | led | {"HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert ran.returncode == 0, ran.stderr
    assert TEXT in ran.stdout
    offered = requests[0]["tools"][0]["function"]
    assert offered["name"] == "search_memory"
    # CrewAI is given a function of the example's own, which takes no types and no day.
    taken = {"query", "k"} if package == "crewai" else {"query", "k", "types", "as_of"}
    assert set(offered["parameters"]["properties"]) == taken
    assert QUESTION in str(requests[0]["messages"])
