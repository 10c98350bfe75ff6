"""Lines that the command prints beside its results."""

import sys
from importlib.metadata import PackageNotFoundError

import pytest

from qrmem.cli import doctor
from qrmem.cli.doctor import Finding, finding_lines
from qrmem.cli.output import reader
from qrmem.cli.progress import Warnings
from qrmem.cli.tree_commands import outline
from qrmem.errors import install
from qrmem.types import Event
from qrmem.types.documents import Tree, TreeNode


def retry(number: int) -> Event:
    return Event("warning", {"what": "retry", "message": f"refused {number}; trying again"})


def test_one_of_many_retries_is_reported_every_few_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    now = [0.0]
    warnings = Warnings(quiet=False, clock=lambda: now[0])
    for number in range(20):
        warnings(retry(number))
        now[0] += 0.5
    told = capsys.readouterr().err.splitlines()
    assert told == ["qrmem: refused 0; trying again", "qrmem: refused 10; trying again"]


@pytest.mark.parametrize(
    ("recorded", "told"),
    [
        ("local.v3", "built-in rules (local.v3)"),
        ("prompted:m:compact:default 2f", "m, mode compact, prompts default 2f"),
        ("prompted:phi3:mini:paper:paper 6e", "phi3:mini, mode paper, prompts paper 6e"),
        ("openie", "openie"),
    ],
)
def test_the_reader_is_named_in_words(recorded: str, told: str) -> None:
    assert reader(recorded) == told


def test_every_other_warning_is_shown_unless_it_is_empty(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for warnings in (Warnings(quiet=False), Warnings(quiet=True)):
        warnings(Event("warning", {"message": "first\nline"}))
        warnings(Event("warning", {"message": "second"}))
        warnings(Event("warning", {"what": "excess"}))
        warnings(Event("step", {"message": "no warning"}))
    told = capsys.readouterr()
    assert told.err == "qrmem: first line\nqrmem: second\n"
    assert not told.out


def test_doctor_says_once_how_extras_are_installed() -> None:
    found = [Finding(f"extra {name}", False, f"not installed: pip {name}") for name in ("a", "b")]
    lines = finding_lines([*found, Finding("extra mcp", True, "mcp 2.3.0")])
    assert lines[:2] == [f"--  extra {name}            not installed" for name in ("a", "b")]
    assert lines[2] == "ok  extra mcp          mcp 2.3.0"
    assert len(lines) == 4
    assert lines[3].endswith('-m pip install "qrmem[a]"')
    assert len(finding_lines([Finding("python", True, "3.11")])) == 1


def test_an_environment_without_pip_is_one_of_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    assert install("serve") == f'uv pip install --python {sys.executable} "qrmem[serve]"'


def test_trees_without_umap_are_no_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package == "umap-learn":
            raise PackageNotFoundError
        return "1.0"

    monkeypatch.setattr(doctor, "version", version)
    found = doctor._extra("tree", doctor.EXTRAS["tree"])
    assert found.is_well
    assert found.text == "scikit-learn 1.0, no umap-learn: vectors are reduced by PCA"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("You tear them to pieces.”", "You tear them to pieces."),
        ("“I certainly shall not.", "I certainly shall not."),
        ("”", ""),
        ('He left."', "He left."),
        ('"He left.', "He left."),
        ("“Well,” he said, “go.”", "“Well,” he said, “go.”"),
        ('He said: "Go."', 'He said: "Go."'),
    ],
)
def test_a_quotation_mark_whose_partner_stands_elsewhere_is_not_shown(
    said: str, shown: str
) -> None:
    node = TreeNode("k", "book", 1, said, (said,), (), ("s",))
    tree = Tree("book", "ilm", (node,), ("k",))
    _, summary, surprise = outline(tree, 1)
    assert summary == f"  level 1, 1 segment: {shown}"
    assert surprise == f"    ! {shown}"
