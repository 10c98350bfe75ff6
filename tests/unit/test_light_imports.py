"""`import qrmem` and looking at a SQLite memory load no heavy package (DESIGN, section 8)."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {"langgraph", "langchain_core", "openai", "neo4j", "networkx", "scipy", "torch"}

REPORT = "import sys; print(' '.join(sorted({name.split('.')[0] for name in sys.modules})))"


def loaded(code: str, folder: Path) -> set[str]:
    """Run code in a fresh interpreter; return the top-level packages that it loaded."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{REPORT}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={"HOME": str(folder), "PATH": ""},
    )
    return set(done.stdout.splitlines()[-1].split())


def test_the_import_alone_loads_nothing_heavy(tmp_path: Path) -> None:
    assert not loaded("import qrmem", tmp_path) & (HEAVY | {"numpy", "pydantic", "rich"})


def test_the_table_of_tokens_is_read_when_something_is_counted(tmp_path: Path) -> None:
    code = "import qrmem.memory.ask, qrmem.agents, qrmem.cli.commands\n"
    code += "from qrmem.text.tokens import _table\n"
    loaded(code + "assert not _table.cache_info().currsize", tmp_path)


def test_a_worker_that_reads_loads_nothing_heavy(tmp_path: Path) -> None:
    code = "import qrmem.agents.executor, qrmem.io.sources, qrmem.answering.local"
    assert not loaded(code, tmp_path) & (HEAVY | {"pydantic"})


def test_a_search_loads_nothing_heavy(tmp_path: Path) -> None:
    opened = "import qrmem.sync\nwith qrmem.sync.open('m.db', embedder='none') as memory:\n"
    loaded(opened + "    memory.add_text('Ada Lovelace met Charles Babbage.')", tmp_path)
    found = loaded(opened + "    assert memory.search('Who met Babbage?')", tmp_path)
    assert not found & (HEAVY | {"pydantic"})


@pytest.mark.parametrize(
    "words", [["search", "Babbage"], ["status"], ["show"], ["show", "Ada Lovelace"], ["list"]]
)
def test_looking_at_a_sqlite_memory_loads_nothing_heavy(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Ada Lovelace met Charles Babbage in London.")
    run = "from qrmem.cli import main\n"
    loaded(run + "assert main(['add', 'a.txt', '--embedder', 'none', '--quiet']) == 0", tmp_path)
    assert not loaded(f"{run}assert main({words!r}) == 0", tmp_path) & HEAVY


def test_help_loads_no_memory(tmp_path: Path) -> None:
    code = "from qrmem.cli import main\nwith suppress(SystemExit):\n    main(['--help'])\n"
    code += "assert 'qrmem.memory' not in sys.modules, 'help is shown within 0.25 s'"
    found = loaded(f"import sys\nfrom contextlib import suppress\n{code}", tmp_path)
    assert not found & (HEAVY | {"asyncio", "numpy", "pydantic", "rich", "tenacity"})
