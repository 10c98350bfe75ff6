"""Settings: precedence, and refused values."""

import re
from dataclasses import fields, replace
from errno import EACCES
from importlib.resources import files
from math import inf
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from qrmem.config import (
    ENVIRONMENT,
    UNKNOWN_WINDOW,
    USUAL_WINDOW,
    Secret,
    Settings,
    misspelt,
    stages,
)
from qrmem.errors import UsageError
from qrmem.memory.runtime import caps_of
from qrmem.settings_files import PROMPT_SETS


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


def test_a_home_that_may_not_be_entered_holds_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_file = Path.is_file

    def refuse(self: Path) -> bool:
        if str(self).startswith("/home/other"):
            raise PermissionError(EACCES, "Permission denied", str(self))
        return is_file(self)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "is_file", refuse)
    assert Settings.from_env({"HOME": "/home/other"}) == Settings.from_env({})


def test_the_memory_s_own_variable_beats_that_of_the_database() -> None:
    environ = {"QRMEM_MEMORY": "mine.db", "NEO4J_URI": "neo4j://x"}
    assert Settings.from_env(environ).memory == "mine.db"
    assert Settings.from_env({"NEO4J_URI": "neo4j://x"}).memory == "neo4j://x"


OTHER = (
    {"mode": "paper", "orientation": "local", "stage_models": "reading=m"}
    | {
        "text_fragments": "words:500",
        "code_fragments": "definitions",
        "executor": "processes:2",
    }
    | dict.fromkeys(("max_calls", "max_tokens", "max_cost", "max_seconds"), "3")
    | dict.fromkeys(("questions", "shared_tokens"), "3")
    | {"reasoning_effort": "low"}
)


def test_every_setting_can_be_given_in_the_environment() -> None:
    given = {
        str: "1",
        int: "1000",
        float: "0.5",
    }
    for field in fields(Settings):
        kind = type(field.default)
        other = "no" if field.default else "yes"
        value = OTHER.get(field.name) or (other if kind is bool else given.get(kind, "secret"))
        settings = Settings.from_env({f"QRMEM_{field.name.upper()}": value})
        assert getattr(settings, field.name) != field.default, field.name


def test_a_name_of_our_own_beats_one_that_others_share() -> None:
    environ = {"QRMEM_API_KEY": "ours", "OPENAI_API_KEY": "theirs", "NEO4J_USERNAME": "theirs"}
    settings = Settings.from_env(environ)
    assert settings.api_key.reveal() == "ours"
    assert settings.neo4j_user == "theirs"
    assert Settings.from_env({"QRMEM_TIMEOUT": ""}).timeout == Settings().timeout


def test_the_database_of_neo4j_has_its_usual_variable_and_ours_wins() -> None:
    environ = {"NEO4J_DATABASE": "theirs"}
    assert Settings.from_env(environ).neo4j_database == "theirs"
    environ["QRMEM_NEO4J_DATABASE"] = "ours"
    assert Settings.from_env(environ).neo4j_database == "ours"


def test_the_docstring_lists_every_setting_once() -> None:
    listed = re.findall(r"^ {8}(\w+): ", Settings.__doc__ or "", re.MULTILINE)
    assert sorted(listed) == sorted(field.name for field in fields(Settings))


def test_the_documents_list_every_setting_with_its_default() -> None:
    text = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    shown = dict(re.findall(r"^\| `(\w+)` \|(?: `([^`]*)`)? \|", text, re.MULTILINE))
    assert shown == {field.name: _shown(field.default) for field in fields(Settings)}
    for variable in set(re.findall(r"`([A-Z0-9_]{8,})[=`]", text)) - {"QRMEM_"}:
        assert variable in ENVIRONMENT, variable


def test_the_documents_say_of_every_setting_what_an_untrusted_file_may_do() -> None:
    text = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()
    text = text.partition("## A file in the working folder")[2]
    rows = re.findall(r"^\| (.+) \| ((?:`\w+`(?:, )?)+) \| .+ \|$", text, re.MULTILINE)
    told = {name: what for what, names in rows for name in re.findall(r"\w+", names)}
    hints = get_type_hints(Settings, include_extras=True)
    assert told.keys() == hints.keys()
    by_rule: dict[object, set[str]] = {}
    for name, hint in hints.items():
        by_rule.setdefault(getattr(hint, "__metadata__", None), set()).add(told[name])
    assert [len(rules) for rules in by_rule.values()] == [1] * len(by_rule), by_rule
    assert by_rule[None] == {"nothing"}
    assert len({rule for rules in by_rule.values() for rule in rules}) == len(by_rule)


def test_an_untrusted_file_may_name_the_built_in_prompt_sets() -> None:
    folders = {one.name for one in (files("qrmem.prompts") / "templates").iterdir() if one.is_dir()}
    assert folders == set(PROMPT_SETS)


def _shown(default: object) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, float):
        return f"{default:g}"
    return "" if default in (None, Secret("")) else str(default)


def test_a_model_for_a_stage_is_named_in_a_text_or_a_table(tmp_path: Path) -> None:
    file = tmp_path / "qrmem.toml"
    file.write_text('[stage_models]\nreading = "small"\njudge = "big"\n')
    from_file = Settings.from_env({}, file=file)
    assert stages(from_file.stage_models) == {"reading": "small", "judge": "big"}
    from_text = Settings.from_env({"QRMEM_STAGE_MODELS": "reading=small, judge = big"})
    assert stages(from_text.stage_models) == stages(from_file.stage_models)


def test_no_cap_and_a_cap_of_nothing_are_two_things() -> None:
    assert Settings().max_calls is None
    assert Settings.from_env({}, max_calls=0).max_calls == 0


@pytest.mark.parametrize("cap", ["max_calls", "max_tokens", "max_cost", "max_seconds"])
def test_a_cap_of_the_environment_is_lifted_for_one_run(cap: str) -> None:
    environ = {f"QRMEM_{cap.upper()}": "2"}
    capped = Settings.from_env(environ)
    assert getattr(capped, cap) == 2
    given: dict[str, Any] = {}
    for given[cap] in ("none", "inf", inf):
        assert getattr(Settings.from_env(environ, **given), cap) is None
        assert getattr(capped.with_(**given), cap) is None
    assert getattr(Settings(**given), cap) is None
    assert getattr(caps_of(capped, **given), cap.removeprefix("max_")) is None
    assert getattr(Settings.from_env({f"QRMEM_{cap.upper()}": "none"}), cap) is None


def test_a_window_that_is_left_to_the_model_follows_it() -> None:
    settings = replace(Settings(model="gpt-4"), retries=1)
    assert settings.window == 8_192
    assert settings.with_(model="gpt-4o").window == USUAL_WINDOW
    assert replace(settings, model="gpt-4o").window == USUAL_WINDOW
    assert settings.with_(paper_exact=True).window == UNKNOWN_WINDOW
    chosen = settings.with_(window=1_000)
    assert chosen.with_(model="gpt-4o").window == 1_000
    assert settings.with_(window=settings.window).with_(model="gpt-4o").window == 8_192


def test_a_path_is_taken_where_a_text_is_meant(tmp_path: Path) -> None:
    assert Settings.from_env({}, memory=tmp_path).memory == str(tmp_path)


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
        {"window": 4096.5},
        {"timeout": "nan"},
        {"timeout": float("nan")},
        {"timeout": float("inf")},
        {"concurrency": float("inf")},
        {"retries": True},
        {"model": 5},
        {"keep_trails": "perhaps"},
        {"max_calls": -1},
        {"max_cost": "nan"},
        {"max_tokens": "many"},
        {"stage_models": "big"},
        {"stage_models": "judge="},
        {"record": "a", "replay": "b"},
    ],
)
def test_a_wrong_setting_is_refused_with_its_name(chosen: dict[str, Any]) -> None:
    name = next(iter(chosen))
    with pytest.raises(UsageError, match=name):
        Settings.from_env({}, **chosen)


def test_a_wrong_settings_file_is_named(tmp_path: Path) -> None:
    file = tmp_path / "qrmem.toml"
    for content in (b"colour = 1", b"not toml at all", b"\xff\xfe"):
        file.write_bytes(content)
        with pytest.raises(UsageError, match=r"qrmem\.toml"):
            Settings.from_env({}, file=file)


def test_an_error_about_a_misspelt_setting_names_the_nearest_one(tmp_path: Path) -> None:
    environ = dict.fromkeys(["QRMEM_WINDWO", "QRMEM_MODEL", "QRMEM_DATA", "WINDWO"], "1")
    assert misspelt(environ) == {"QRMEM_WINDWO": "QRMEM_WINDOW"}
    (tmp_path / "qrmem.toml").write_text("windwo = 1")
    with pytest.raises(UsageError, match=r"'windwo'; did you mean 'window'\?"):
        Settings.from_env({}, file=tmp_path / "qrmem.toml")


def test_a_settings_file_of_an_editor_that_marks_its_encoding_is_read(tmp_path: Path) -> None:
    file = tmp_path / "qrmem.toml"
    file.write_bytes("\ufeffmodel = 'm'\r\nconcurrency = 3\r\n".encode())
    settings = Settings.from_env({}, file=file)
    assert (settings.model, settings.concurrency) == ("m", 3)


def test_a_key_that_is_no_text_is_refused_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "qrmem.toml"
    file.write_text('api_key = ["sk-123"]')
    with pytest.raises(UsageError, match="api_key must be a text") as refused:
        Settings.from_env({}, file=file)
    assert "sk-123" not in str(refused.value)


def test_a_password_in_an_address_never_shows() -> None:
    settings = Settings(base_url="http://ann:hunter2@host/v1", memory="bolt://ann:a@b@host:7687")
    assert "hunter2" not in repr(settings)
    assert "base_url='http://***@host/v1'" in repr(settings)
    assert "memory='bolt://***@host:7687'" in repr(settings)


def test_a_secret_never_shows() -> None:
    settings = Settings.from_env({"OPENAI_API_KEY": "sk-123", "NEO4J_PASSWORD": "hunter2"})
    assert "sk-123" not in repr(settings) + str(settings.api_key)
    assert "hunter2" not in repr(settings)
    assert settings.api_key.reveal() == "sk-123"
    assert settings.api_key == Secret("sk-123")
