"""The results in the docs are those of the result files, and a result file says what was run."""

import pytest

from qrmem.eval.preset import preset_names
from tools.evaluation_results import recipes
from tools.evaluation_tables import BEGIN, PAGE, page, read_presets, read_runs

RUNS = read_runs()
PRESETS = read_presets()


def test_the_tables_in_the_docs_are_made_of_the_result_files() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, RUNS, PRESETS) == text, "python -m tools.evaluation_tables writes them anew"


def test_another_result_would_make_another_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    fewer = dict(list(RUNS.items())[1:])
    assert page(text, fewer, PRESETS) != text
    with pytest.raises(ValueError, match="no place"):
        page(text.replace(BEGIN, ""), RUNS, PRESETS)


@pytest.mark.parametrize("name", RUNS)
def test_a_result_file_says_what_was_run(name: str) -> None:
    config = RUNS[name]["config"]
    assert config["about"]["git"]
    assert config["files"]
    assert all(len(file["sha256"]) == 64 for file in config["files"])
    assert {"seed", "settings", "items", "prompts", "answers"} <= config.keys()
    assert all(system["failed"] == 0 for system in RUNS[name]["systems"].values())
    assert not any("/" in file["name"] for file in config["files"])


@pytest.mark.parametrize("name", RUNS)
def test_a_result_file_is_made_by_the_command_that_makes_them(name: str) -> None:
    recipe, config = recipes()[name], RUNS[name]["config"]
    assert set(config["systems"]) <= set(recipe.systems)
    assert recipe.embedder == config["settings"]["embedder"]
    assert recipe.skip == config.get("skip", 0)
    assert RUNS[name]["against"] == recipe.against


def test_the_presets_came_to_their_end_against_a_real_model() -> None:
    assert PRESETS is not None
    assert set(PRESETS["presets"]) <= set(preset_names())
    assert len(PRESETS["weights"]["sha256"]) == 64
    for name, found in PRESETS["presets"].items():
        assert found["report"], name
        assert found["items"] >= PRESETS["items"], name
        assert found["calls"] > 0, name
