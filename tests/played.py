"""Runs of `qrmem eval` against the scripted server: the requests and the results."""

import json
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from servers import answering
from servers.openai_server import OpenAIServer

from qrmem.cli import main

Json = Any


def run(server: OpenAIServer, name: str, data: Path, *words: str) -> int:
    base = ["eval", "run", name, "--data", str(data), "--embedder", "none", "--quiet", "--out", "r"]
    return main([*base, "--model", "gpt-4o-mini", "--base-url", server.url, *words])


def asked(server: OpenAIServer, schema: str) -> list[str]:
    """Return the user's messages of the requests with a schema of this name."""
    bodies = [body for body in server.stats.bodies if schema_of(body) == schema]
    return [said_in(body) for body in bodies]


def said_in(body: Mapping[str, Json]) -> str:
    return "\n".join(str(message["content"]) for message in body["messages"])


def schema_of(body: Mapping[str, Json]) -> str:
    return str((body.get("response_format") or {}).get("json_schema", {}).get("name", ""))


def rows(folder: str = "r") -> list[dict[str, Json]]:
    return [json.loads(line) for line in (Path(folder) / "rows.jsonl").read_text().splitlines()]


def reply(**fields: Json) -> str:
    return json.dumps(fields)


def write(folder: Path, corpus: list[dict[str, str]], questions: list[dict[str, Json]]) -> None:
    for name, records in (("corpus", corpus), ("questions", questions)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)))


NAMES = ("Ada Holm", "Bo Lind", "Cay Moor", "Dag Rune", "Eve Sand", "Finn Toft", "Gro Ulv")
EXACT = ":paper_exact=true"


def met() -> list[dict[str, str]]:
    """One document for each pair of neighbours, who met."""
    told = [f"{one} met {other} in the year of the flood. " for one, other in pairwise(NAMES)]
    return [{"_id": f"d{n}", "text": text * 12} for n, text in enumerate(told)]


def never(request: Mapping[str, Json]) -> str:
    """Answer nothing, whatever is read."""
    said = said_in(request)
    if "Action: -1 or -2" in said:
        return f"Reasoning: {said.count('<text S')} passages do not say so.\nAction: -1"
    return answering.answer(request)
