"""Taggers by the package stanza: Stanford CoreNLP by its client, and its own neural pipeline."""

import importlib
import logging
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from qrmem.errors import MissingError, TaggerUnavailable, require_extra

# --- Stanford CoreNLP, the paper's tagger; one server for all segments.
#
# It uses only the coarse model: names of persons, places and organisations, dates and amounts. The
# fine-grained rules also tag words such as "captain", need 2 GB more, and triple the start time.

ANNOTATORS = "tokenize,ssplit,pos,lemma,ner"
COARSE = {"ner.applyFineGrained": "false"}
HEAP = "2G"
START_SECONDS = 120.0
"""Time limit in seconds until a started server has tagged its first word."""
MOST_THREADS = 8
JARS = ("stanford-corenlp-[0-9]*[0-9].jar", "stanford-corenlp-*models*.jar")


class CorenlpEngine:
    """A CoreNLP server: started from a folder of jars, or already running elsewhere.

    Attributes:
        url: address of the server, with user name and password if it needs them.
        threads: number of parallel requests: one per processor, as the server is CPU-bound.
    """

    name = "corenlp"
    threads = min(os.cpu_count() or 1, MOST_THREADS)

    def __init__(self, *, home: str = "", url: str = "", timeout: float = 30.0) -> None:
        """Prepare.

        Args:
            home: folder of jars to start a server from.
            url: address of a running server.
            timeout: time limit in seconds per segment.
        """
        self._home = home
        self.url = url.rstrip("/")
        self._timeout = timeout
        self._server: Any = None
        self._client: Any = None
        self._said: IO[bytes] = BytesIO()
        self._stopped = threading.Event()

    def start(self) -> None:
        """Start the server if it is to run here, and wait until it has tagged a word."""
        module = server_module()
        if self._home:
            self._launch(module)
        self._client = module.CoreNLPClient(
            start_server=module.StartServer.DONT_START,
            endpoint=self.url,
            annotators=ANNOTATORS,
            output_format="json",
            timeout=int(START_SECONDS * 1000),
        )
        try:
            self._annotate("Ready.", START_SECONDS)
        except TimeoutError:
            raise TaggerUnavailable(f"{self._where} gives no answer") from None
        self._client.timeout = int(self._timeout * 1000)

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Return the spans of entities, without pronouns."""
        place = _code_points(text)
        for sentence in self._annotate(text, self._timeout)["sentences"]:
            for mention in sentence.get("entitymentions", ()):
                if sentence["tokens"][mention["tokenBegin"]]["pos"].startswith("PRP"):
                    continue
                start = place[mention["characterOffsetBegin"]]
                end = place[mention["characterOffsetEnd"]]
                kind = type_of(mention["ner"], text[start:end])
                if kind is not None:
                    yield start, end, kind

    def stop(self) -> None:
        """Stop the server if it was started here."""
        self._stopped.set()
        if self._server is not None:
            self._server.stop()
            self._said.close()

    # --- the server -------------------------------------------------------------------------------

    @property
    def _where(self) -> str:
        if self._home:
            return "the CoreNLP server that was started"
        return f"the CoreNLP server at {urlsplit(self.url).netloc.rpartition('@')[2]}"

    def _launch(self, module: Any) -> None:
        check_jars(self._home)
        # The server listens on all addresses of the machine, so it gets a password.
        port, password = _free_port(), secrets.token_hex(16)
        self.url = f"http://qrmem:{password}@localhost:{port}"
        self._server = module.CoreNLPClient(
            start_server=module.StartServer.FORCE_START,
            endpoint=f"http://localhost:{port}",
            username="qrmem",
            password=password,
            # Without a name, the client would write a properties file into the working folder.
            properties="english",
            classpath=f"{self._home}/*",
            memory=HEAP,
            threads=self.threads,
            timeout=int(START_SECONDS * 1000),
            preload=False,
            be_quiet=True,
        )
        # Quiet, so that it prints no texts; its errors at the start are kept.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `stop`)
        self._server.be_quiet, self._server.stdout = False, subprocess.DEVNULL
        self._server.stderr = self._said
        self._server.start()
        self._wait(module)

    def _wait(self, module: Any) -> None:
        # The client itself would wait for two minutes, even if the process has ended.
        deadline = time.monotonic() + START_SECONDS
        while not self._stopped.wait(0.2):
            try:
                if self._server.is_alive():
                    return
            except module.client.ShouldRetryException:
                pass
            code = self._server.server.poll()
            if code is not None:
                raise TaggerUnavailable(
                    f"the CoreNLP server ended while starting (exit {code}): {self._last_words()}"
                )
            if time.monotonic() > deadline:
                raise TaggerUnavailable(f"{self._where} did not start within {START_SECONDS:g} s")
        self._server.stop()
        raise TaggerUnavailable("closed while starting")

    def _last_words(self) -> str:
        """Return the line of the server's output that names an error, else its last line."""
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").split("\n")
        output_lines = [line for line in lines if line.strip()] or ["it printed nothing"]
        return _short(next((line for line in output_lines if "Error" in line), output_lines[-1]))

    def _annotate(self, text: str, seconds: float) -> Mapping[str, Any]:
        module = server_module()
        properties = COARSE | {"timeout": str(int(seconds * 1000))}
        try:
            reply: Mapping[str, Any] = self._client.annotate(text, properties=properties)
        except module.TimeoutException:
            raise TimeoutError from None
        except module.AnnotationException as exc:
            if "timed out" in str(exc):
                raise TimeoutError from None
            raise TaggerUnavailable(f"{self._where} does not answer: {_root(exc)}") from exc
        except ValueError as exc:
            raise TaggerUnavailable(f"{self._where} does not send JSON: {_short(exc)}") from exc
        return reply


def check_jars(home: str) -> None:
    """Check that a server can be started from a folder on this machine.

    Raises:
        MissingError: something is missing; the message says what.
    """
    if shutil.which("java") is None:
        raise MissingError("CoreNLP needs Java: no java is on the PATH")
    folder = Path(home)
    if not folder.is_dir():
        raise MissingError(f"CORENLP_HOME is {home}: no such folder")
    for pattern in JARS:
        if not any(folder.glob(pattern)):
            raise MissingError(f"no {pattern.replace('[0-9]*[0-9]', '*')} in CORENLP_HOME ({home})")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])


def _code_points(text: str) -> range | list[int]:
    """Return the character of each UTF-16 unit, which is what Java counts."""
    if max(text, default="") <= "\uffff":
        return range(len(text) + 1)
    places: list[int] = []
    for index, char in enumerate(text):
        places += [index] * (2 if char > "\uffff" else 1)
    return [*places, len(text)]


def _root(exc: BaseException) -> str:
    """Return the root cause of a failed request, such as `Connection refused`."""
    while (cause := exc.__cause__ or exc.__context__) is not None:
        exc = cause
    return _short(getattr(exc, "strerror", None) or exc)


def _short(what: object) -> str:
    return (" ".join(str(what).split()) or type(what).__name__)[:160]


# --- The package, imported when a tagger is used, and the types of its labels

TYPES: Mapping[str, str] = {
    **dict.fromkeys(("PERSON", "PER"), "PERSON"),
    **dict.fromkeys(("PLACE", "LOCATION", "LOC", "GPE", "FAC"), "PLACE"),
    **dict.fromkeys(("ORGANISATION", "ORGANIZATION", "ORG"), "ORGANISATION"),
    **dict.fromkeys(("DATE", "TIME", "DURATION", "SET"), "DATE"),
    **dict.fromkeys(("NUMBER", "MONEY", "PERCENT", "ORDINAL", "CARDINAL", "QUANTITY"), "NUMBER"),
    **dict.fromkeys(("WORK", "WORK_OF_ART"), "WORK"),
    "EVENT": "EVENT",
}
"""Labels of CoreNLP (CoNLL, SUTime) and of Stanza (OntoNotes, CoNLL) to types. Any other label
gives an unknown type, which can be merged with every type."""

_FIGURES = frozenset({"DATE", "NUMBER"})


def type_of(label: str, text: str) -> str | None:
    """Return the type of a tagger's label; `None` for a date or number without a digit.

    Taggers label "now", "one" and "the first" as dates and numbers; such words are in every second
    segment.
    """
    kind = TYPES.get(label.upper(), "")
    if kind in _FIGURES and not any(char.isdigit() for char in text):
        return None
    return kind


def require_stanza() -> None:
    """Check that the package is installed, without an import.

    Raises:
        MissingError: the extra is not installed.
    """
    require_extra("taggers", "this tagger", "stanza")


def stanza_module() -> Any:
    """Return `stanza`.

    Raises:
        MissingError: stanza or one of its dependencies cannot be imported.
    """
    return _imported("stanza")


def server_module() -> Any:
    """Return `stanza.server`, with CoreNLP's client; it raises the errors of `stanza_module`."""
    return _imported("stanza.server")


def _imported(name: str) -> Any:
    logger = logging.getLogger("stanza")
    if logger.level == logging.NOTSET:
        # Else stanza sets INFO, and prints the server's command line, password included.
        logger.setLevel(logging.WARNING)
    try:
        return importlib.import_module(name)
    except ImportError as exc:
        raise MissingError(f"the extra taggers is not installed completely: {exc}") from exc


# Stanza's neural pipeline, from a folder of models on this machine; nothing is downloaded.

RESOURCES = "resources.json"


class StanzaEngine:
    """Stanza's pipeline of tokenizer and NER; it reads one segment at a time."""

    name = "stanza"
    threads = 1

    def __init__(self, folder: str) -> None:
        """Prepare; `folder` is the folder from `stanza.download(model_dir=…)`."""
        self._folder = Path(folder)
        self._pipeline: Any = None

    def start(self) -> None:
        """Load the models."""
        language = language_of(self._folder)
        stanza = stanza_module()
        try:
            self._pipeline = stanza.Pipeline(
                language,
                dir=str(self._folder),
                processors="tokenize,ner",
                download_method=stanza.DownloadMethod.NONE,
                logging_level="ERROR",
            )
        except Exception as exc:
            # Model files are pickles and tensors: a broken one can raise any exception.
            why = " ".join(str(exc).split()) or type(exc).__name__
            raise MissingError(f"stanza's models in {self._folder} do not load: {why}") from exc

    def spans(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Return the spans of entities."""
        try:
            entities = self._pipeline(text).ents
        except Exception as exc:
            why = " ".join(str(exc).split()) or type(exc).__name__
            raise TaggerUnavailable(f"stanza's pipeline failed: {why[:160]}") from exc
        for entity in entities:
            kind = type_of(entity.type, text[entity.start_char : entity.end_char])
            if kind is not None:
                yield entity.start_char, entity.end_char, kind

    def stop(self) -> None:
        """Release the models."""
        self._pipeline = None


def language_of(folder: Path) -> str:
    """Return the language of a folder's models; of several English, or else the first.

    Raises:
        MissingError: something is missing; the message says what.
    """
    if not folder.is_dir():
        raise MissingError(f"stanza's models: no folder {folder}")
    if not (folder / RESOURCES).is_file():
        raise MissingError(f"stanza's models: no {RESOURCES} in {folder}")
    languages = sorted(path.parent.name for path in folder.glob("*/ner"))
    if not languages:
        raise MissingError(f"stanza's models: no language with a model for names in {folder}")
    return languages[0] if len(languages) == 1 or "en" not in languages else "en"
