"""Real taggers: a CoreNLP server out of its jars, a Stanza pipeline out of a folder of models."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from servers import maven

import qrmem
from qrmem.config import Settings
from qrmem.errors import MissingError, TaggerUnavailable
from qrmem.extraction.stanza_taggers import CorenlpEngine
from qrmem.extraction.taggers import ExternalTagger, open_tagger
from qrmem.types import Contribution, EntityTagger

pytestmark = [
    pytest.mark.taggers,
    pytest.mark.skipif(find_spec("stanza") is None, reason="the extra `taggers` is not installed"),
    # stanza and torch warn about their own future at import.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
    pytest.mark.timeout(300),
]

ROOT = Path(__file__).parents[2]
POM = ROOT / "docker" / "corenlp-local" / "pom.xml"
TEXT = (
    "\U0001f600 Captain Ahab said that he met Herman Melville in New Bedford on 3 May 1841.\n"
    "He waited now for the first ship of the Nantucket Whaling Company, and paid $40.\n"
)


@pytest.fixture(scope="module")
def jars() -> str:
    """Return the folder of CoreNLP's jars."""
    try:
        return str(maven.jars("corenlp", POM))
    except maven.Unavailable as exc:
        if os.environ.get("CI", "").lower() == "true":
            pytest.fail(str(exc))
        pytest.skip(str(exc))


@pytest.fixture(scope="module")
def engine(jars: str) -> Iterator[CorenlpEngine]:
    """Yield a server that runs, for all tests that only ask it."""
    started = CorenlpEngine(home=jars)
    started.start()
    yield started
    started.stop()


@pytest.fixture
def served(engine: CorenlpEngine) -> Settings:
    """Return settings that name the running server by its address."""
    return Settings(memory="memory://", embedder="none", tagger=f"corenlp:{engine.url}")


def types(mentions: object) -> dict[str, str]:
    return {mention.name: mention.type for mention in mentions}  # type: ignore[attr-defined]


async def readings(memory: qrmem.Memory) -> list[Contribution]:
    store, found = memory._session.store, list[Contribution]()
    for info in await memory.documents():
        found += await store.contributions(memory._session.ns, info.id, kinds=("extraction",))
    return found


def java_children() -> list[int]:
    """Return the numbers of the CoreNLP servers that this process has started and that live."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text().rpartition(")")[2].split()[1]
            words = (stat.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(parent) == os.getpid() and b"StanfordCoreNLPServer" in words:
            found.append(int(stat.parent.name))
    return found


# --- CoreNLP -------------------------------------------------------------------------------------


async def test_corenlp_finds_typed_names_where_they_stand_and_no_pronouns(served: Settings) -> None:
    tagger = open_tagger(served)
    assert types(await tagger.tag(TEXT)) == {
        "Ahab": "PERSON",
        "Herman Melville": "PERSON",
        "New Bedford": "PLACE",
        "3 May 1841": "DATE",
        "Nantucket Whaling Company": "ORGANISATION",
        "$40": "NUMBER",
    }
    await tagger.close()


async def test_a_memory_unites_its_entities_with_the_reasoner_s(served: Settings) -> None:
    async with qrmem.open(settings=served) as memory:
        report = await memory.add({"id": "d", "text": TEXT})
        assert report.is_complete
        (reading,) = await readings(memory)
        # The rules know the captain by his title, and leave the company without a type.
        assert (await memory.entity("Captain Ahab")).entity.type == "PERSON"
        assert (await memory.entity("Nantucket Whaling Company")).entity.type == "ORGANISATION"
        assert (await memory.entity("New Bedford")).entity.type == "PLACE"
        assert reading.tagger == "corenlp"


async def test_one_server_is_started_for_a_run_and_ended_with_it(jars: str) -> None:
    before = set(java_children())
    settings = Settings(memory="memory://", embedder="none", tagger="corenlp", corenlp_home=jars)
    async with qrmem.open(settings=settings) as memory:
        texts = [
            {"id": str(n), "text": f"Herman Melville saw ship {n} in London."} for n in range(9)
        ]
        report = await memory.add(texts)
        await memory.add({"id": "later", "text": "Charles Dickens stayed in London."})
        assert len(set(java_children()) - before) == 1
        assert report.is_complete
        assert {reading.tagger for reading in await readings(memory)} == {"corenlp"}
    assert set(java_children()) == before


async def test_a_server_that_hangs_on_one_segment_is_named_and_asked_about_the_next(
    engine: CorenlpEngine,
) -> None:
    tagger = ExternalTagger(CorenlpEngine(url=engine.url, timeout=5), timeout=5)
    await tagger.tag("Herman Melville was there.")
    pid = engine._server.server.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(TaggerUnavailable, match="no answer within 5 s"):
            await tagger.tag("Herman Melville was there.")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert types(await tagger.tag("Herman Melville was there.")) == {"Herman Melville": "PERSON"}
    await tagger.close()


async def test_the_server_itself_gives_up_a_text_that_takes_too_long(engine: CorenlpEngine) -> None:
    asked = CorenlpEngine(url=engine.url, timeout=0.02)
    asked.start()
    with pytest.raises(TimeoutError):
        list(asked.spans(TEXT * 300))


async def test_a_server_that_dies_in_the_middle_leaves_marked_segments_that_a_rerun_completes(
    jars: str,
    served: Settings,
    tmp_path: Path,
) -> None:
    documents = [
        {"id": str(n), "text": f"Herman Melville saw ship {n} in London."} for n in range(8)
    ]
    path = str(tmp_path / "m.db")
    own = served.with_(memory=path, tagger="corenlp", corenlp_home=jars)
    before = set(java_children())
    async with qrmem.open(settings=own) as memory:
        await memory.add(documents[:4])
        (started,) = set(java_children()) - before
        os.kill(started, signal.SIGKILL)
        report = await memory.add(documents[4:])
        assert report.states == {"partial": 4}
        reasons = {reason for _, _, reason in report.problems}
        assert all("tagger corenlp: the CoreNLP server that was started" in r for r in reasons)
        assert all(r.endswith("tagged by the rules") for r in reasons)
        assert (await memory.entity("Herman Melville")).segments
    async with qrmem.open(settings=served.with_(memory=path)) as memory:
        report = await memory.add(documents)
        assert (report.states, report.read) == ({"ok": 8}, 4)
        again = await readings(memory)
        entities = await memory.entities()
    async with qrmem.open(settings=served) as memory:
        await memory.add(documents)
        assert await readings(memory) == again
        assert await memory.entities() == entities


async def test_jars_that_hold_nothing_are_named_and_the_segments_are_done(tmp_path: Path) -> None:
    home = tmp_path / "jars"
    home.mkdir()
    for name in ("stanford-corenlp-4.5.10.jar", "stanford-corenlp-4.5.10-models.jar"):
        (home / name).touch()
    done = _add(tmp_path, {"QRMEM_TAGGER": "corenlp", "CORENLP_HOME": str(home)})
    assert done.returncode == 1
    assert "ended while starting (exit 1): Error: Could not find or load main class" in done.stderr
    assert "1 partial" in done.stdout


async def test_a_missing_java_is_named_and_the_segments_are_done(jars: str, tmp_path: Path) -> None:
    done = _add(tmp_path, {"QRMEM_TAGGER": "corenlp", "CORENLP_HOME": jars, "PATH": ""})
    assert done.returncode == 1
    assert "CoreNLP needs Java: no java is on the PATH; tagged by the rules" in done.stderr
    assert "1 partial" in done.stdout


async def test_models_that_are_not_among_the_jars_are_named(jars: str, tmp_path: Path) -> None:
    home = linked(Path(jars), tmp_path / "jars")
    tagger = open_tagger(Settings(tagger="corenlp", corenlp_home=str(home)))
    with pytest.raises(MissingError, match=r"no stanford-corenlp-\*models\*\.jar"):
        await tagger.tag(TEXT)
    await tagger.close()
    (home / "stanford-corenlp-4.5.10-models.jar").touch()
    tagger = open_tagger(Settings(tagger="corenlp", corenlp_home=str(home)))
    with pytest.raises(TaggerUnavailable, match="ended while starting"):
        await tagger.tag(TEXT)
    await tagger.close()


def linked(jars: Path, home: Path) -> Path:
    """Return a folder with all jars but those of the models."""
    home.mkdir()
    for jar in jars.glob("*.jar"):
        if "models" not in jar.name:
            (home / jar.name).symlink_to(jar)
    return home


async def test_an_address_where_nothing_listens_is_named() -> None:
    tagger = open_tagger(Settings(tagger="corenlp:http://user:secret@localhost:9"))
    with pytest.raises(TaggerUnavailable, match="CoreNLP server at localhost:9 does not") as caught:
        await tagger.tag(TEXT)
    assert "secret" not in str(caught.value)
    await tagger.close()


def _add(tmp_path: Path, environment: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    document = tmp_path / "d.txt"
    document.write_text(TEXT)
    options = ["--memory", str(tmp_path / "m.db"), "--embedder", "none"]
    return subprocess.run(
        [sys.executable, "-m", "qrmem", "add", str(document), *options],
        env=os.environ | environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


# --- Stanza --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of models that know a dozen names."""
    folder = tmp_path_factory.mktemp("stanza")
    script = ROOT / "tests" / "servers" / "tiny_stanza.py"
    done = subprocess.run(
        [sys.executable, str(script), str(folder)],
        # Threads of torch wait for one another by spinning, which takes minutes on a busy machine.
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "models"


def neural(models: Path) -> EntityTagger:
    return open_tagger(Settings(tagger=f"stanza:{models}"))


async def test_stanza_s_pipeline_finds_typed_names(models: Path) -> None:
    tagger = neural(models)
    found = await tagger.tag(
        "Rosa Quint saw Ann Moor in Vantry. Tam Garrick met Bob in Mussel Island."
    )
    assert types(found) == {
        "Rosa Quint": "PERSON",
        "Ann Moor": "PERSON",
        "Vantry": "PLACE",
        "Tam Garrick": "PERSON",
        "Bob": "PERSON",
        "Mussel Island": "PLACE",
    }
    await tagger.close()


async def test_a_memory_is_built_with_stanza(models: Path) -> None:
    settings = Settings(memory="memory://", embedder="none", tagger=f"stanza:{models}")
    async with qrmem.open(settings=settings) as memory:
        report = await memory.add({"id": "d", "text": "Rosa Quint saw Ann Moor in Vantry."})
        assert report.is_complete
        assert (await memory.entity("Vantry")).entity.type == "PLACE"
        assert [reading.tagger for reading in await readings(memory)] == ["stanza"]


async def test_a_model_that_does_not_load_is_named_and_the_segment_is_done(
    models: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "models"
    for part in ("tokenize", "ner"):
        (folder / "en" / part).mkdir(parents=True)
        (folder / "en" / part / "tiny.pt").write_bytes(b"no model")
    (folder / "resources.json").write_bytes((models / "resources.json").read_bytes())
    settings = Settings(memory="memory://", embedder="none", tagger=f"stanza:{folder}")
    async with qrmem.open(settings=settings) as memory:
        report = await memory.add({"id": "d", "text": "Rosa Quint saw Ann Moor in Vantry."})
        assert report.states == {"partial": 1}
        ((_, _, reason),) = report.problems
        assert reason.startswith(f"tagger stanza: stanza's models in {folder} do not load: ")
        assert (await memory.entity("Rosa Quint")).segments
