"""Progress while a command reads: a bar, and the time of embedding."""

import sys

import pytest

from qrmem.cli.progress import Progress
from qrmem.types import Event


def told(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    total: int,
    seconds: float,
    *,
    quiet: bool = False,
) -> str:
    """Return what is printed for a run whose every batch of 128 takes some seconds."""
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with Progress(quiet=quiet) as shown:
        shown(Event("phase", {"phase": "embedding", "segments": total}))
        for at in range(0, total, 128):
            now += seconds
            shown(Event("embedded", {"count": min(128, total - at)}))
    return capsys.readouterr().err


def test_long_embedding_is_announced_once_after_its_first_batch(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    err = told(monkeypatch, capsys, 1_408, 20)
    assert err.count("embedding 1,408 segments") == 1
    assert "about 200 s" in err


def test_short_or_quiet_embedding_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(monkeypatch, capsys, 200, 1) == ""
    assert told(monkeypatch, capsys, 128, 60) == ""
    assert told(monkeypatch, capsys, 1_408, 20, quiet=True) == ""


def test_the_bar_does_not_stand_at_its_end_while_names_are_merged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with Progress(quiet=False) as shown:
        shown(Event("document", {"segments": 2}))
        shown(Event("segment", {"count": 2}))
        (reading,) = shown._bar.tasks
        assert (reading.completed, reading.total) == (2, 2)
        shown(Event("phase", {"phase": "merging"}))
        (merging,) = shown._bar.tasks
        assert (merging.description, merging.completed, merging.total) == ("merging", 2, None)
    assert capsys.readouterr().out == ""
