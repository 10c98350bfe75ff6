"""Draw the state machines as Mermaid: `python -m tools.diagrams > docs/diagrams.md`."""

from collections.abc import Iterator

from qrmem.agents import STRATEGIES, building
from qrmem.agents.search.steps import search_graph
from qrmem.agents.strategies import whole

HEAD = """\
# State machines

Made by `python -m tools.diagrams`; a test compares. A dotted arrow is a choice of the step before
it. All strategies are one machine with more or fewer steps: see `agents/search/steps.py`.
"""


def page() -> str:
    """Return the page with all diagrams."""
    return "\n".join([HEAD, *_sections()])


def _sections() -> Iterator[str]:
    for name, strategy in {**STRATEGIES, whole.NAME: whole.STRATEGY}.items():
        yield _section(f"ask: {name}", search_graph(strategy).get_graph().draw_mermaid())
    yield _section("add", building.build_graph().get_graph().draw_mermaid())


def _section(title: str, drawn: str) -> str:
    # Colours are left to whoever shows it.
    lines = [line for line in drawn.splitlines() if "classDef" not in line]
    body = "\n".join(lines[lines.index("---", 1) + 1 :] if lines[0] == "---" else lines)
    return f"## {title}\n\n```mermaid\n{body.strip()}\n```\n"


if __name__ == "__main__":
    print(page(), end="")
