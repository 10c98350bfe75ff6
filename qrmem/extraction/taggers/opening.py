"""From a setting to a tagger."""

from urllib.parse import urlsplit

from qrmem.config import Settings, revealed, shown
from qrmem.errors import MissingError, UsageError
from qrmem.extraction.rules_tagger import RulesTagger
from qrmem.extraction.taggers.corenlp import CorenlpEngine
from qrmem.extraction.taggers.external import Engine, ExternalTagger
from qrmem.extraction.taggers.neural import StanzaEngine
from qrmem.extraction.taggers.stanza_package import require_stanza
from qrmem.types import EntityTagger


def open_tagger(settings: Settings) -> EntityTagger:
    """Return the entity tagger that the settings name; nothing is started yet.

    Raises:
        UsageError: there is none of that name.
        MissingError: where to find it is not said, or the extra is not installed.
    """
    kind, _, where = revealed(settings.tagger).partition(":")
    if settings.tagger == "rules":
        return RulesTagger()
    if kind == "corenlp":
        engine: Engine = _corenlp(where, settings)
    elif kind == "stanza":
        engine = _stanza(where or settings.stanza_models)
    else:
        raise UsageError(
            f"no tagger is called {settings.tagger!r}; there are: rules, corenlp, corenlp:URL, "
            "stanza, stanza:FOLDER"
        )
    require_stanza()
    return ExternalTagger(engine, timeout=settings.tagger_timeout)


def _corenlp(url: str, settings: Settings) -> CorenlpEngine:
    if url:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{shown(url)!r} is no address of a CoreNLP server: http://HOST:PORT")
        return CorenlpEngine(url=url, timeout=settings.tagger_timeout)
    if settings.corenlp_home:
        return CorenlpEngine(home=settings.corenlp_home, timeout=settings.tagger_timeout)
    raise MissingError(
        "no CoreNLP is named: set CORENLP_HOME to the folder of its jars, and it is started; "
        "or give a server that runs: --tagger corenlp:http://localhost:9000"
    )


def _stanza(folder: str) -> StanzaEngine:
    if folder:
        return StanzaEngine(folder)
    raise MissingError(
        "no folder of Stanza's models is named: --tagger stanza:FOLDER, or STANZA_RESOURCES_DIR"
    )
