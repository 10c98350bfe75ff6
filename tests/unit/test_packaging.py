"""The files of the package: a forgotten file would be missing only in the wheel."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from qrmem.errors import install

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
#: Folders at the top that are imported as `qrmem.NAME`.
LINKS = ("agents", "graphstore", "prompts")
#: Tracked files of the packages that no wheel holds.
NOT_SHIPPED: set[str] = set()


def sources() -> list[Path]:
    """Return every module of ours once, by its real path."""
    return [
        path
        for folder in ("qrmem", *LINKS)
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not any(parent.is_symlink() for parent in path.parents)
    ]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> tuple[set[str], set[str], set[str]]:
    """Return the files of the wheel, of the sdist, and of the wheel that the sdist builds."""
    folder = tmp_path_factory.mktemp("archives")
    wheel = build(ROOT, folder, "wheel")
    sdist = build(ROOT, folder, "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    unpacked = folder / sdist.name.removesuffix(".tar.gz")
    again = build(unpacked, folder / "again", "wheel")
    return in_wheel(wheel), files_below(unpacked), in_wheel(again)


def test_the_wheel_holds_every_tracked_file_and_no_other(
    archives: tuple[set[str], set[str], set[str]],
) -> None:
    assert archives[0] == tracked("qrmem", *LINKS) - NOT_SHIPPED


def test_the_sdist_builds_the_same_wheel(archives: tuple[set[str], set[str], set[str]]) -> None:
    wheel, sdist, again = archives
    assert again == wheel
    assert {name for name in sdist if name.startswith("qrmem/")} == wheel


def test_the_image_builds_the_same_wheel(
    tmp_path: Path, archives: tuple[set[str], set[str], set[str]]
) -> None:
    lines = (ROOT / "docker" / "Dockerfile").read_text().splitlines()
    for line in (line for line in lines if line.startswith("COPY ") and "--from" not in line):
        _, *sources, place = line.split()
        for source in map(ROOT.joinpath, sources):
            if source.is_dir():
                shutil.copytree(source, tmp_path / place, symlinks=True)
            else:
                shutil.copy(source, tmp_path)
    assert in_wheel(build(tmp_path, tmp_path / "dist", "wheel")) == archives[0]


def build(project: Path, folder: Path, target: str) -> Path:
    """Build one archive as pip does, with the backend that pyproject.toml names."""
    backend = PROJECT["build-system"]["build-backend"]
    pytest.importorskip(backend)
    folder.mkdir(exist_ok=True)
    script = f"import {backend} as backend; backend.build_{target}({str(folder)!r})"
    subprocess.run(
        [sys.executable, "-c", script], cwd=project, check=True, stdout=subprocess.DEVNULL
    )
    (archive,) = folder.glob("*.whl" if target == "wheel" else "*.tar.gz")
    return archive


def in_wheel(path: Path) -> set[str]:
    """Return what a wheel installs, without its metadata."""
    names = zipfile.ZipFile(path).namelist()
    return {name for name in names if not name.split("/")[0].endswith(".dist-info")}


def files_below(folder: Path) -> set[str]:
    """Return every file below a folder, by its path from there."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def tracked(*folders: str) -> set[str]:
    """Return what git tracks in these folders, under the names that are imported."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *folders], cwd=ROOT, check=True, capture_output=True, text=True
    )
    names = {name for name in listed.stdout.split("\0") if name and not (ROOT / name).is_symlink()}
    return {name if name.startswith("qrmem/") else f"qrmem/{name}" for name in names}


def test_an_extra_is_installed_into_the_python_that_runs() -> None:
    for extra in set(PROJECT["project"]["optional-dependencies"]) - {"dev"}:
        python, *how, wanted = shlex.split(install(extra))
        assert (python, how) == (sys.executable, ["-m", "pip", "install"])
        assert wanted == f"qrmem[{extra}]"


def test_every_extra_is_installed_by_a_step_of_ci() -> None:
    steps = " ".join(path.read_text() for path in (ROOT / ".ci").iterdir())
    installed = {
        name for listed in re.findall(r"\[([a-z,]+)\]", steps) for name in listed.split(",")
    }
    assert installed >= PROJECT["project"]["optional-dependencies"].keys() - {"docs"}, (
        "dev has docs"
    )


def test_the_links_are_links() -> None:
    for name in LINKS:
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


@pytest.mark.parametrize("name", LINKS)
def test_nobody_imports_the_short_names(name: str) -> None:
    for path in sources():
        assert name not in imported(path), path


def test_doctor_knows_every_extra() -> None:
    from qrmem.cli.doctor import EXTRAS

    assert EXTRAS.keys() == PROJECT["project"]["optional-dependencies"].keys() - {"dev"}


#: They are translated, not English: docs say "instead of", "mentioned" and "for anyone who".
NOT_ENGLISH = re.compile(
    r"\bin\s+the\s+place\s+of\b|\btold\s+of\b|\bfor\s+whoever\b", re.IGNORECASE
)


def test_pages_and_modules_have_none_of_the_phrases_that_are_not_english() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docker").rglob("*.md")]
    stub = "What is told of "  # a question in a plan's stub, whose length shapes the figures
    found = [
        f"{path.relative_to(ROOT)}: {match[0]}"
        for path in [*pages, *sources()]
        for match in NOT_ENGLISH.finditer(path.read_text().replace(stub, ""))
    ]
    assert found == []
