"""The functions under the tools that make the stored results."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from servers.openai_server import OpenAIServer, in_thread
from servers.relay import relaying

from qrmem.agents.build_state import silent
from qrmem.config import Settings
from qrmem.eval import (
    DATASETS,
    Corpus,
    RunOptions,
    RunSpec,
    load,
    preset_named,
    preset_names,
    read_results,
    run_task,
)
from qrmem.eval.datasets.data_files import data_file
from qrmem.llm.chat_model import ServerChatModel
from qrmem.types import ChatRequest, Message
from tools.evaluation_tables import PUBLISHED, RESULTS, SEEN, page
from tools.short_data import write_data

DATA = Path(__file__).parent / "data"


class Letters:
    """An embedder that counts letters, under the name of another."""

    name = "local"
    dimension = 26

    def windows(self, text: str) -> Sequence[str]:
        return [text]

    async def embed(
        self, texts: Sequence[str], *, kind: Literal["passage", "query"] = "passage"
    ) -> NDArray[np.float32]:
        counts = [[text.lower().count(chr(97 + n)) for n in range(26)] for text in texts]
        found = np.array(counts, dtype=np.float32) + 1e-3
        scaled: NDArray[np.float32] = found / np.linalg.norm(found, axis=1, keepdims=True)
        return scaled


async def test_a_run_takes_an_embedder_that_is_open_already(tmp_path: Path) -> None:
    spec = RunSpec(task="hotpotqa", data=DATA / "hotpot.json", systems=("dense:k=2", "dos-rag"))
    options = RunOptions(listener=silent, embedder=Letters())
    ran = await run_task(spec, tmp_path / "r", Settings(embedder="local"), options)
    assert (ran.failed, ran.done) == (0, 6)
    found = read_results(tmp_path / "r").systems["dense:k=2"]
    assert all(row.prediction.ranked for row in found.rows.values())


async def test_a_relay_that_keeps_replies_asks_for_each_once(tmp_path: Path) -> None:
    with in_thread(OpenAIServer()) as server:
        said = []
        for fetched in (1, 0):
            with relaying(server.url, tmp_path / "replies") as relay:
                chat = ServerChatModel(Settings(model="m", base_url=relay.url))
                request = ChatRequest((Message("user", "Say something about the sea."),))
                said.append((await chat.complete(request)).text)
                await chat.aclose()
                assert (len(relay.replies), relay.fetched) == (1, fetched)
        assert said[0] == said[1]
        assert server.stats.requests == 1


@pytest.mark.parametrize("task", sorted(next(iter(PUBLISHED.values()))))
def test_ours_come_first_then_what_was_seen_then_the_published(task: str) -> None:
    means = {"recall@5": {"value": 0.5, "low": 0.4, "high": 0.6}}
    config = {"corpus": "file", "seed": 0, "files": [], "items": {"n": 1, "of": 1}}
    config |= {"settings": {"embedder": "none", "window": 4096}, "about": {"git": "abc"}}
    systems = {"bm25": {"means": means, "differences": {}}}
    run = {"config": config, "metrics": ["recall@5"], "systems": systems}
    made = page(task, [run])
    kept = (RESULTS / f"{task}.md").read_text(encoding="utf-8")
    for text in (made, kept):
        parts = [
            "| bm25 |",
            *([SEEN[task]] if task in SEEN else []),
            "Published figures, over other",
        ]
        places = [text.index(part) for part in parts]
        assert places == sorted(places)


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("QRMEM_DATA"), reason="QRMEM_DATA is not set")
def test_shortened_data_is_there_for_every_part_of_every_preset(tmp_path: Path) -> None:
    write_data(tmp_path, Path(os.environ["QRMEM_DATA"]), items=5, words=70)
    for name in preset_names():
        for part in preset_named(name).parts:
            path = data_file(part.task, DATASETS[part.task], tmp_path)
            found = load(part.task, path, Corpus(part.corpus))
            assert len(found.items) >= 5, (name, part.name)
    (line,) = (tmp_path / "QuALITY.v1.0.1.htmlstripped.dev").read_text().splitlines()
    assert len(json.loads(line)["article"].split()) == 70
