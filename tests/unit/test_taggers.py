"""External taggers: their results and failures; no process is started."""

import asyncio
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import pytest

from qrmem.config import Settings
from qrmem.errors import MissingError, TaggerUnavailable, UsageError
from qrmem.extraction import stanza_taggers
from qrmem.extraction.rules_tagger import RulesTagger
from qrmem.extraction.stanza_taggers import type_of
from qrmem.extraction.taggers import PATIENCE, ExternalTagger, open_tagger


class Engine:
    """Finds given words; counts how it is used."""

    name = "words"
    threads = 2

    def __init__(self, *words: tuple[str, str]) -> None:
        self.words = words
        self.log: list[str] = []
        self.broken: Exception | None = None
        self.hangs = threading.Event()
        self.hangs.set()

    def start(self) -> None:
        self.log.append("start")
        if self.broken:
            raise self.broken

    def spans(self, text: str) -> Sequence[tuple[int, int, str]]:
        self.hangs.wait(10)
        return [
            (text.index(word), text.index(word) + len(word), kind)
            for word, kind in self.words
            if word in text
        ]

    def stop(self) -> None:
        self.log.append("stop")


async def test_it_starts_once_for_all_segments_and_is_ended_with_the_memory() -> None:
    engine = Engine(("Ann", "PERSON"), ("Ann Moor", "PERSON"), ("Skarrow", "PLACE"))
    tagger = ExternalTagger(engine, timeout=5)
    assert engine.log == []
    found = await asyncio.gather(*(tagger.tag("Ann Moor left\nSkarrow.") for _ in range(5)))
    assert engine.log == ["start"]
    assert [(m.name, m.type) for m in found[0]] == [("Ann Moor", "PERSON"), ("Skarrow", "PLACE")]
    await tagger.close()
    assert engine.log[-1] == "stop"


async def test_commas_and_blanks_around_a_name_are_no_part_of_it() -> None:
    tagger = ExternalTagger(Engine((", 7 March,", "DATE"), (" , ", "PERSON")), timeout=5)
    found = await tagger.tag("It was Sunday, 7 March, and , it rained.")
    assert [(m.name, m.type) for m in found] == [("7 March", "DATE")]
    await tagger.close()


def test_a_failed_request_is_reported_with_its_cause() -> None:
    error = ValueError("HTTPConnectionPool(host='localhost', port=9): Max retries exceeded")
    error.__cause__ = ConnectionRefusedError(111, "Connection refused")
    assert stanza_taggers._root(error) == "Connection refused"


async def test_an_unused_server_is_not_ended() -> None:
    engine = Engine()
    await ExternalTagger(engine, timeout=5).close()
    assert engine.log == []


async def test_a_start_that_fails_is_not_tried_for_every_segment() -> None:
    engine = Engine()
    engine.broken = MissingError("no Java")
    tagger = ExternalTagger(engine, timeout=5)
    for _ in range(3):
        with pytest.raises(MissingError, match="no Java"):
            await tagger.tag("Ann")
    assert engine.log.count("start") == 1
    await tagger.close()


async def test_a_segment_that_takes_too_long_is_given_up_and_a_dumb_engine_after_a_few() -> None:
    engine = Engine(("Ann", "PERSON"))
    tagger = ExternalTagger(engine, timeout=0.02)
    engine.hangs.clear()
    for _ in range(PATIENCE):
        with pytest.raises(TaggerUnavailable, match=r"no answer within 0\.02 s"):
            await tagger.tag("Ann")
    engine.hangs.set()
    with pytest.raises(TaggerUnavailable, match="not used any more"):
        await tagger.tag("Ann")
    await tagger.close()


async def test_one_segment_that_takes_too_long_does_not_spoil_the_next() -> None:
    engine = Engine(("Ann", "PERSON"))
    tagger = ExternalTagger(engine, timeout=5)
    for _ in range(PATIENCE + 1):
        engine.hangs.clear()
        tagger._timeout = 0.02
        with pytest.raises(TaggerUnavailable):
            await tagger.tag("Ann")
        engine.hangs.set()
        tagger._timeout = 5
        assert [m.name for m in await tagger.tag("Ann")] == ["Ann"]
    await tagger.close()


async def test_a_cancelled_start_is_left_to_the_other_callers() -> None:
    engine = Engine(("Ann", "PERSON"))
    may_start = threading.Event()
    engine.start = lambda: (may_start.wait(10), None)[1]  # type: ignore[method-assign]
    tagger = ExternalTagger(engine, timeout=5)
    first = asyncio.create_task(tagger.tag("Ann"))
    second = asyncio.create_task(tagger.tag("Ann"))
    await asyncio.sleep(0)
    first.cancel()
    may_start.set()
    assert [m.name for m in await second] == ["Ann"]
    await tagger.close()


@pytest.mark.parametrize(
    ("label", "text", "kind"),
    [
        ("PERSON", "Ann", "PERSON"),
        ("GPE", "Skarrow", "PLACE"),
        ("ORGANIZATION", "the Trust", "ORGANISATION"),
        ("WORK_OF_ART", "Hamlet", "WORK"),
        ("MISC", "British", ""),
        ("DATE", "3 May 1841", "DATE"),
        ("DATE", "now", None),
        ("CARDINAL", "one", None),
        ("MONEY", "$40", "NUMBER"),
    ],
)
def test_labels_become_our_types_and_bare_words_of_time_and_number_nothing(
    label: str, text: str, kind: str | None
) -> None:
    assert type_of(label, text) == kind


@pytest.mark.parametrize("text", ["", "Ann met Bob", "\U0001f600 Ann \U0001f600\U0001f600 met Bob"])
def test_offsets_of_java_are_counted_in_our_characters(text: str) -> None:
    place = stanza_taggers._code_points(text)
    for at in range(len(text) + 1):
        units = len(text[:at].encode("utf-16-le")) // 2
        assert place[units] == at


def test_a_folder_without_the_jars_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(java.parent))
    with pytest.raises(MissingError, match="no such folder"):
        stanza_taggers.check_jars(str(tmp_path / "none"))
    with pytest.raises(MissingError, match=r"no stanford-corenlp-\*.jar in CORENLP_HOME"):
        stanza_taggers.check_jars(str(tmp_path))
    (tmp_path / "stanford-corenlp-4.5.10.jar").touch()
    with pytest.raises(MissingError, match=r"no stanford-corenlp-\*models\*.jar"):
        stanza_taggers.check_jars(str(tmp_path))
    (tmp_path / "stanford-corenlp-4.5.10-models.jar").touch()
    stanza_taggers.check_jars(str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="needs Java"):
        stanza_taggers.check_jars(str(tmp_path))


def test_the_jar_of_models_alone_is_not_taken_for_the_program(tmp_path: Path) -> None:
    (tmp_path / "stanford-corenlp-4.5.10-models.jar").touch()
    assert not list(tmp_path.glob(stanza_taggers.JARS[0]))


def test_a_folder_without_models_of_stanza_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="no folder"):
        stanza_taggers.language_of(tmp_path / "none")
    with pytest.raises(MissingError, match=r"no resources\.json"):
        stanza_taggers.language_of(tmp_path)
    (tmp_path / "resources.json").write_text("{}")
    with pytest.raises(MissingError, match="no language with a model for names"):
        stanza_taggers.language_of(tmp_path)
    (tmp_path / "de" / "ner").mkdir(parents=True)
    assert stanza_taggers.language_of(tmp_path) == "de"
    (tmp_path / "en" / "ner").mkdir(parents=True)
    assert stanza_taggers.language_of(tmp_path) == "en"


@pytest.fixture
def stanza(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install something that is called so."""
    (tmp_path / "stanza.py").touch()
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("stanza")
async def test_the_settings_choose_the_tagger() -> None:
    assert isinstance(open_tagger(Settings()), RulesTagger)
    for settings in (
        Settings(tagger="corenlp", corenlp_home="jars"),
        Settings(tagger="corenlp:http://localhost:9000"),
        Settings(tagger="stanza", stanza_models="models"),
        Settings(tagger="stanza:models"),
    ):
        made = open_tagger(settings)
        assert made.name == settings.tagger.partition(":")[0]
        await made.close()


@pytest.mark.parametrize("tagger", ["spacy", "rules:x", "corenlp:localhost", "Rules", ""])
def test_an_unknown_tagger_is_refused(tagger: str) -> None:
    with pytest.raises(UsageError):
        open_tagger(Settings(tagger=tagger))


@pytest.mark.parametrize(("tagger", "hint"), [("corenlp", "CORENLP_HOME"), ("stanza", "FOLDER")])
def test_a_tagger_that_nobody_said_where_to_find_is_refused(tagger: str, hint: str) -> None:
    with pytest.raises(MissingError, match=hint):
        open_tagger(Settings(tagger=tagger))


@pytest.mark.skipif(find_spec("stanza") is not None, reason="the extra `taggers` is there")
def test_without_the_extra_a_tagger_is_refused_before_anything_is_read() -> None:
    with pytest.raises(MissingError, match=r'-m pip install "qrmem\[taggers\]"'):
        open_tagger(Settings(tagger="corenlp:http://localhost:9000"))


def test_the_environment_says_where_they_are() -> None:
    found = Settings.from_env({"CORENLP_HOME": "/jars", "STANZA_RESOURCES_DIR": "/models"})
    assert (found.corenlp_home, found.stanza_models) == ("/jars", "/models")
