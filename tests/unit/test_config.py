"""Settings: what beats what, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from qrmem.config import Secret, Settings
from qrmem.errors import UsageError


def test_argument_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    file = tmp_path / "qrmem.toml"
    file.write_text('namespace = "file"\nwindow = 1000\nmodel = "file"\n')
    environ = {"QRMEM_NAMESPACE": "environment", "QRMEM_MODEL": "environment"}
    settings = Settings.from_env(environ, file=file, model="argument", embedder=None)
    assert (settings.model, settings.namespace, settings.window) == (
        "argument",
        "environment",
        1000,
    )
    assert settings.concurrency == Settings().concurrency


def test_the_memory_s_own_variable_beats_that_of_the_database() -> None:
    environ = {"QRMEM_MEMORY": "mine.db", "NEO4J_URI": "neo4j://x"}
    assert Settings.from_env(environ).memory == "mine.db"
    assert Settings.from_env({"NEO4J_URI": "neo4j://x"}).memory == "neo4j://x"


@pytest.mark.parametrize(
    "chosen",
    [
        {"mode": "fast"},
        {"orientation": "up"},
        {"window": 1},
        {"concurrency": 0},
        {"namespace": ""},
        {"namespace": "a\x00b"},
        {"colour": "red"},
        {"window": "many"},
    ],
)
def test_a_wrong_setting_is_refused_with_its_name(chosen: dict[str, Any]) -> None:
    (name,) = chosen
    with pytest.raises(UsageError, match=name):
        Settings.from_env({}, **chosen)


def test_a_wrong_settings_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "qrmem.toml"
    for content in (b"colour = 1", b"not toml at all", b"\xff\xfe"):
        file.write_bytes(content)
        with pytest.raises(UsageError, match=r"qrmem\.toml"):
            Settings.from_env({}, file=file)


def test_a_secret_never_shows() -> None:
    settings = Settings.from_env({"OPENAI_API_KEY": "sk-123", "NEO4J_PASSWORD": "hunter2"})
    assert "sk-123" not in repr(settings) + str(settings.api_key)
    assert "hunter2" not in repr(settings)
    assert settings.api_key.reveal() == "sk-123"
    assert settings.api_key == Secret("sk-123")
