"""The requests of presets beside the papers' prompts, one for each prompt, as Markdown.

    PYTHONPATH=tests python -m tools.preset_requests DATA [--write FILE]

DATA has the files that `qrmem eval` needs for the presets below. The scripted server answers, so no
model is asked. We describe the papers' prompts in our own words (QRMeM, Appendix E; FragRel,
Prompts 1 to 3).
"""

import argparse
import contextlib
import io
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from servers.openai_server import OpenAIServer, in_thread

from qrmem.cli import main as qrmem

PRESETS = {
    "table-2": "QRMeM",
    "fragrel-table-3": "FragRel",
    "fragrel-table-4": "B C500 1K",
}
"""Preset to the row of it that is played."""

ASKED = {
    "entities (QRMeM, E)": (
        "Five steps to find the entities that answers depend on, the summary, the passage. Section "
        "2.1 has the question too. No form is given for the reply.",
        ("Find the key entities", "1. ", "5. ", "Background", "The question", "Passage:"),
    ),
    "relations (QRMeM, E)": (
        "Four points to relate the entities by, the passage, the passage with its entities marked. "
        "No form is given for the reply.",
        ("Connect the entities", "1. ", "4. ", "# The text", "with its entities marked"),
    ),
    "summary (QRMeM, E)": (
        "The text is to be shortened, with what it says of persons, events and places, into one "
        "short paragraph.",
        ("Shorten a text", "The text", "one short paragraph"),
    ),
    "judge (QRMeM, E)": (
        "The text, the question with its options, then two actions. -1: the text does not settle "
        "it; -2: it does, with reason and answer. Reply: Reasoning, Action.",
        ("<text", "Question:", "-1:", "-2:", "Reasoning:", "Action:"),
    ),
    "answer about a story (FragRel, Prompt 1)": (
        "The story stands between two instructions to answer in few words; then the question.",
        ("Read the story", "Story:", "The question about the story follows", "Question:"),
    ),
    "chat (FragRel, Prompt 3)": (
        "Related evidences, recent dialogs and what the user says are shown; the reply is to be "
        "brief and helpful.",
        ("Related Evidences:", "Recent Dialogs:", "User Input:"),
    ),
}
"""Prompt to what its paper asks for, and to words that stand in our request in this order."""


def in_order(text: str, words: Sequence[str]) -> bool:
    """Whether a text has all of some words, each behind the one before."""
    at = 0
    for word in words:
        at = text.find(word, at) + len(word)
        if at < len(word):
            return False
    return True


def played(preset: str, system: str, data: Path) -> list[str]:
    """Return the text of every request that one item of a preset sends.

    Raises:
        SystemExit: the preset did not run to its end.
    """
    os.environ.setdefault("QRMEM_SEGMENT_TOKENS", "60")  # short texts have segments to join, too
    with tempfile.TemporaryDirectory() as folder, in_thread(OpenAIServer()) as server:
        words = ["eval", "run", preset, "--data", str(data), "--system", system, "--sample", "1"]
        words += ["--embedder", "none", "--quiet", "--out", f"{folder}/r", "--model", "scripted"]
        told = io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
            code = qrmem([*words, "--base-url", server.url])
        if code not in (0, 1):
            raise SystemExit(f"{preset}: {told.getvalue()}")
        return [_said(body) for body in server.stats.bodies if "messages" in body]


def page(data: Path) -> str:
    """Return, for each preset, a request of every prompt beside what the paper asks."""
    pieces = ["# What presets send, beside what the papers ask\n"]
    for preset, system in PRESETS.items():
        requests = played(preset, system, data)
        pieces.append(f"## {preset}, {system}: {len(requests)} requests\n")
        for name, (paper, words) in ASKED.items():
            sent = [request for request in requests if in_order(request, words)]
            if sent:
                shown = "\n".join(f"    {line}" for line in sent[0].splitlines())
                pieces.append(f"### {name}, {len(sent)} times\n\nThe paper: {paper}\n\n{shown}\n")
    return "\n".join(pieces)


def _said(body: Mapping[str, Any]) -> str:
    return "\n\n".join(str(message["content"]) for message in body["messages"])


def main(words: Sequence[str] | None = None) -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(
        allow_abbrev=False, description=__doc__.splitlines()[0] if __doc__ else ""
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args(words)
    made = page(given.data)
    if given.write:
        given.write.write_text(made, encoding="utf-8")
    else:
        print(made)


if __name__ == "__main__":
    main()
