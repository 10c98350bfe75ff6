"""Files of `docker/` and `.github/` pass the linters that people would run on them."""

import shutil
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from qrmem.cli.parser import build_parser
from qrmem.config import Settings
from qrmem.errors import UsageError
from qrmem.web.guard import check_host

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"


def _lint(tool: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    path = shutil.which(tool, path=str(Path(sys.executable).parent)) or shutil.which(tool)
    if path is None:
        pytest.skip(f"{tool} is not installed (it comes with the extra `dev`)")
    return subprocess.run([path, *arguments], capture_output=True, text=True, check=False)


def test_the_image_passes_hadolint() -> None:
    done = _lint("hadolint", str(DOCKER / "Dockerfile"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_hadolint_would_see_a_mistake(tmp_path: Path) -> None:
    bad = tmp_path / "Dockerfile"
    bad.write_text("FROM python:latest\nRUN cd /tmp\n", encoding="utf-8")
    assert _lint("hadolint", str(bad)).returncode != 0


def test_the_image_does_not_run_as_root() -> None:
    lines = (DOCKER / "Dockerfile").read_text(encoding="utf-8").splitlines()
    users = [line.split()[1] for line in lines if line.startswith("USER ")]
    assert users
    assert users[-1].split(":")[0] not in {"root", "0"}


def test_the_compose_file_passes_its_linter() -> None:
    done = _lint("compose-lint", "check", "--fail-on", "high", str(DOCKER / "compose.yaml"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_compose_linter_would_see_a_mistake(tmp_path: Path) -> None:
    bad = tmp_path / "compose.yaml"
    bad.write_text("services:\n  a:\n    image: b\n    privileged: true\n", encoding="utf-8")
    assert _lint("compose-lint", "check", "--fail-on", "high", str(bad)).returncode != 0


def test_the_compose_file_keeps_to_the_schema_of_compose() -> None:
    done = _lint(
        "check-jsonschema", "--builtin-schema", "vendor.compose-spec", str(DOCKER / "compose.yaml")
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_runs_in_a_container_reaches_this_machine_and_gets_embedder_and_caps() -> None:
    services = yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))["services"]
    known = {f"QRMEM_{field.name.upper()}" for field in fields(Settings)}
    for name in ("serve", "qrmem"):
        service = services[name]
        assert service["extra_hosts"] == ["host.docker.internal:host-gateway"]
        passed = set(service["environment"])
        assert passed >= {"QRMEM_EMBEDDER", *(one for one in known if one.startswith("QRMEM_MAX_"))}
        assert {one for one in passed if one.startswith("QRMEM_")} <= known
    assert services["qrmem"]["volumes"] == ["${QRMEM_FILES:-${PWD:-.}}:/memory"]


def test_the_service_of_the_compose_file_is_a_command_that_qrmem_has() -> None:
    text = (DOCKER / "compose.yaml").read_text(encoding="utf-8")
    services = yaml.safe_load(text)["services"]
    serve = services["serve"]
    given = build_parser().parse_args(serve["command"])
    assert given.host == "0.0.0.0"
    inside = serve["ports"][0].rpartition(":")[2]
    assert str(given.port) == inside
    assert serve["ports"][0].startswith("127.0.0.1:")
    with pytest.raises(UsageError, match="QRMEM_TOKEN"):
        check_host(given.host, token="")
    assert "QRMEM_TOKEN" in serve["environment"]
    assert serve["depends_on"]["neo4j"]["condition"] == "service_healthy"
    for service in services.values():
        named = {volume.split(":")[0] for volume in service.get("volumes", ())}
        own = {name for name in named if name[0] not in "./$"}
        assert own <= set(yaml.safe_load(text)["volumes"])
    assert "serve" in (DOCKER / "Dockerfile").read_text(encoding="utf-8"), "the extra"


SCHEMA = ("--builtin-schema", "vendor.github-workflows")


def test_the_workflow_passes_its_linters() -> None:
    done = _lint("check-jsonschema", *SCHEMA, str(WORKFLOW))
    assert done.returncode == 0, done.stdout + done.stderr
    done = _lint("zizmor", "--offline", str(WORKFLOW.parents[1]))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("runs-on:", "run-on:"),
        ("checkout@v6", "checkout"),
        ('"v$(', '"${{ github.ref_name }}$('),
    ],
)
def test_the_linters_would_see_a_mistake(right: str, wrong: str, tmp_path: Path) -> None:
    bad = tmp_path / "ci.yml"
    text = WORKFLOW.read_text(encoding="utf-8")
    assert right in text
    bad.write_text(text.replace(right, wrong), encoding="utf-8")
    config = str(WORKFLOW.parents[1] / "zizmor.yml")
    found = _lint("zizmor", "--offline", "--config", config, str(bad))
    assert found.returncode or _lint("check-jsonschema", *SCHEMA, str(bad)).returncode


def test_what_is_cited_is_this_version() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert cited["version"] == project["version"]
    assert cited["license"] == project["license"]
    assert cited["repository-code"] == project["urls"]["Repository"]
    assert f"## {project['version']}\n" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
