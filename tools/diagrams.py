"""Draw packages and state machines as Mermaid: `python -m tools.diagrams > docs/diagrams.md`."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

from qrmem.agents import STRATEGIES, building
from qrmem.agents.search.steps import search_graph
from qrmem.agents.strategies import one_reading

ROOT = Path(__file__).parents[1]
HEAD = """\
# Diagrams

Made by `python -m tools.diagrams`; a test compares.

## The house

Each layer imports from those below it and from none above; `make layers` checks it.

{house}
## State machines

A dotted arrow is a choice of the step before
it. All strategies are one machine with more or fewer steps: see `agents/search/steps.py`.
"""


def page() -> str:
    """Return the page with all diagrams."""
    return "\n".join([HEAD.format(house=_house()), *_sections()])


def _house() -> str:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    names = [layer.replace("qrmem.", "") for layer in layers]
    boxes = [f'\tL{n}["{name}"]' for n, name in enumerate(names)]
    arrows = "\tL" + " --> L".join(str(n) for n in range(len(names)))
    return "\n".join(["```mermaid", "flowchart TD", *boxes, arrows, "```", ""])


def _sections() -> Iterator[str]:
    for name, strategy in {**STRATEGIES, one_reading.WHOLE_NAME: one_reading.WHOLE}.items():
        yield _section(f"ask: {name}", search_graph(strategy).get_graph().draw_mermaid())
    yield _section("add", building.build_graph().get_graph().draw_mermaid())


def _section(title: str, drawn: str) -> str:
    # The renderer chooses the colours.
    lines = [line for line in drawn.splitlines() if "classDef" not in line]
    body = "\n".join(lines[lines.index("---", 1) + 1 :] if lines[0] == "---" else lines)
    return f"### {title}\n\n```mermaid\n{body.strip()}\n```\n"


if __name__ == "__main__":
    print(page(), end="")
