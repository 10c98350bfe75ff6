#!/usr/bin/env python3
"""Writes guide.html, the page that Neo4j Browser plays, from the saved queries of qrmem."""

import html
from pathlib import Path

from qrmem.graphstore.neo4j.browser import (
    AS_ASKED,
    PARAMETERS,
    browser_queries,
    parameter_command,
)

TARGET = Path(__file__).resolve().parent / "guide.html"

SLIDE = """\
  <slide class="row-fluid">
    <div class="col-sm-12">
      <h3>{title}</h3>
      {words}
{code}
    </div>
  </slide>
"""

CODE = """\
      <pre mode="cypher" class="pre-scrollable programlisting cm-s-neo code runnable \
standalone-example ng-binding" data-lang="cypher" lang="cypher">{text}</pre>"""

START = """\
<p>Run these two first: one keeps the Browser from drawing more edges than a view asks for, one sets
the parameters (put your namespace in). Then go through the slides and click a query. All but
<code>ns</code> may stay empty:</p>
<ul>{rows}</ul>
<p>Every query is bounded; nodes can be unfolded by a double click.</p>
"""


def page() -> str:
    """Return the guide."""
    values = {"ns": "default"} | dict.fromkeys(PARAMETERS, "")
    rows = "".join(
        f"<li><code>{name}</code>: {html.escape(words)}</li>" for name, words in PARAMETERS.items()
    )
    slides = [
        _slide("A memory of qrmem", START.format(rows=rows), AS_ASKED, parameter_command(values))
    ]
    slides += [_slide(query.title, "", query.text) for query in browser_queries("")]
    return f'<article class="guide">\n<carousel>\n{"".join(slides)}</carousel>\n</article>\n'


def _slide(title: str, words: str, *texts: str) -> str:
    code = "\n".join(CODE.format(text=html.escape(text, quote=False)) for text in texts)
    return SLIDE.format(title=html.escape(title), words=words, code=code)


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
