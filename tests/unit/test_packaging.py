"""A package or a link that was forgotten would only be missing in the wheel."""

import ast
import re
import shlex
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from qrmem.errors import install

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = PROJECT["tool"]["setuptools"]["package-dir"]


def sources() -> list[Path]:
    """Return every module of ours once, by its real path."""
    return [
        path
        for folder in FOLDERS.values()
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not any(parent.is_symlink() for parent in path.parents)
    ]


def test_every_folder_with_code_is_in_the_wheel() -> None:
    found = {
        ".".join([name, *init.parent.relative_to(ROOT / folder).parts])
        for name, folder in FOLDERS.items()
        for init in (ROOT / folder).rglob("__init__.py")
        if not any(parent.is_symlink() for parent in init.parents)
    }
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == sorted(found)


def test_an_extra_is_installed_by_its_packages_into_the_python_that_runs() -> None:
    extras = PROJECT["project"]["optional-dependencies"]
    for extra in set(extras) - {"dev"}:
        python, _, _, how, *packages = shlex.split(install(extra))
        assert (python, how) == (sys.executable, "install")
        names = {re.split(r"[\[<>=;]", package)[0] for package in packages}
        # A checkout may have been installed before its list of packages grew.
        assert names
        assert names <= {re.split(r"[\[<>=;]", wanted)[0] for wanted in extras[extra]}


def test_the_links_are_links() -> None:
    for name in ("agents", "graphstore", "prompts"):
        assert (ROOT / "qrmem" / name).is_symlink(), f"qrmem/{name} must be a link to ../{name}"


def test_every_import_is_declared() -> None:
    project = PROJECT["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    declared = {_distribution(word) for group in groups for word in group}
    providers = packages_distributions()
    for path in sources():
        for module in imported(path):
            names = {_distribution(name) for name in providers.get(module, [])}
            # An extra that is not installed here has no provider to compare with.
            assert not names or names & declared, f"{path.relative_to(ROOT)} imports {module}"


def test_majors_are_capped() -> None:
    project = PROJECT["project"]
    for word in project["dependencies"]:
        assert ",<" in word, f"{word}: the next major could break us"


def imported(path: Path) -> set[str]:
    """Return the top-level packages from elsewhere that a module imports."""
    import sys

    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"qrmem", "_typeshed"}


def _distribution(word: str) -> str:
    name = word.split(";")[0].split("[")[0]
    for mark in "<>=!~ ":
        name = name.split(mark)[0]
    return name.lower().replace("_", "-")


@pytest.mark.parametrize("name", ["agents", "graphstore", "prompts"])
def test_nobody_imports_the_short_names(name: str) -> None:
    for path in sources():
        assert name not in imported(path), path


def test_doctor_knows_every_extra() -> None:
    from qrmem.cli.doctor import EXTRAS

    assert EXTRAS.keys() == PROJECT["project"]["optional-dependencies"].keys() - {"dev"}
