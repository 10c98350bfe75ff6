"""Trains a real Stanza pipeline that knows a dozen names, in seconds: `tiny_stanza.py FOLDER`.

Stanza's own models cannot be had from a package registry; these are made by Stanza's own training,
so that what loads and runs them is the code that loads and runs the big ones.
"""

import importlib
import json
import random
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

PEOPLE = ["Ann Moor", "Bob", "Nell Sayle", "Tam Garrick", "Rosa Quint", "Ilsa", "Pip Sykes"]
PLACES = ["Skarrow", "Vantry", "Norholm", "Mussel Island", "Candle Street", "Dunmarrow"]
VERBS = ["saw", "met", "wrote to", "waited for"]

Word = tuple[str, str]
"""A word and its label."""


def main(folder: Path) -> None:
    """Write training texts, train, and leave models as Stanza's downloader would."""
    work, models = folder / "work", folder / "models"
    work.mkdir(parents=True)
    sentences = _sentences(random.Random(1))
    for part, size in (("train", 300), ("dev", 40)):
        _write(work / part, list(islice(sentences, size)))
    (work / "mwt.json").write_text("[]")
    _train_tokenizer(work, models / "en" / "tokenize")
    _train_ner(work, models / "en" / "ner")
    names = {"tokenize": "tiny", "ner": "tiny"}
    resources = {
        "lang_name": "English",
        "tokenize": {"tiny": {"md5": ""}},
        "ner": {"tiny": {"md5": "", "dependencies": []}},
        "default_processors": names,
        "packages": {"default": names},
    }
    (models / "resources.json").write_text(json.dumps({"en": resources}))


def _sentences(rng: random.Random) -> Iterator[list[Word]]:
    while True:
        yield [
            *_labelled(rng.choice(PEOPLE), "PERSON"),
            *((word, "O") for word in rng.choice(VERBS).split()),
            *_labelled(rng.choice(PEOPLE), "PERSON"),
            ("in", "O"),
            *_labelled(rng.choice(PLACES), "GPE"),
            (".", "O"),
        ]


def _labelled(name: str, label: str) -> list[Word]:
    first, *rest = name.split()
    return [
        (first, f"B-{label}" if rest else f"S-{label}"),
        *((word, f"E-{label}") for word in rest),
    ]


def _write(path: Path, sentences: Sequence[list[Word]]) -> None:
    """Write one set in the four forms that the trainers read."""
    groups = [sentences[at : at + 4] for at in range(0, len(sentences), 4)]
    texts = [" ".join(map(_text, group)) for group in groups]
    marks = ["0".join(map(_marks, group)) for group in groups]
    path.with_suffix(".txt").write_text("\n\n".join(texts) + "\n\n")
    path.with_suffix(".marks").write_text("\n\n".join(marks) + "\n\n")
    path.with_suffix(".conllu").write_text("".join(map(_conllu, sentences)))
    words = [
        [{"id": [n], "text": word, "ner": label} for n, (word, label) in enumerate(sentence, 1)]
        for sentence in sentences
    ]
    path.with_suffix(".json").write_text(json.dumps(words))


def _text(sentence: Sequence[Word]) -> str:
    return " ".join(word for word, _ in sentence[:-1]) + "."


def _marks(sentence: Sequence[Word]) -> str:
    """Return a mark for each character: 1 ends a word, 2 a sentence."""
    text, at = _text(sentence), 0
    marks = ["0"] * len(text)
    for word, _ in sentence:
        at = text.index(word, at) + len(word)
        marks[at - 1] = "1"
    marks[-1] = "2"
    return "".join(marks)


def _conllu(sentence: Sequence[Word]) -> str:
    rows = []
    for n, (word, _) in enumerate(sentence, 1):
        after = "SpaceAfter=No" if n == len(sentence) - 1 else "_"
        relation = "root" if n == 1 else "dep"
        rows.append("\t".join([str(n), word, *"____", str(n - 1), relation, "_", after]))
    return "\n".join(rows) + "\n\n"


def _train_tokenizer(work: Path, target: Path) -> None:
    options = {
        "txt_file": work / "train.txt",
        "label_file": work / "train.marks",
        "dev_txt_file": work / "dev.txt",
        "dev_label_file": work / "dev.marks",
        "dev_conll_gold": work / "dev.conllu",
        "conll_file": work / "found.conllu",
        "mwt_json_file": work / "mwt.json",
        "lang": "en",
        "hidden_dim": 16,
        "emb_dim": 8,
        "batch_size": 8,
        "lr0": 0.01,
        "steps": 120,
        "eval_steps": 120,
    }
    off = ("dropout", "unit_dropout", "feat_dropout", "feat_unit_dropout", "sent_drop_prob")
    _train("tokenizer", target, options | dict.fromkeys(off, 0))


def _train_ner(work: Path, target: Path) -> None:
    options = {
        "train_file": work / "train.json",
        "eval_file": work / "dev.json",
        "hidden_dim": 32,
        "char_hidden_dim": 16,
        "char_emb_dim": 16,
        "optim": "adam",
        "lr": 0.01,
        "max_steps": 120,
        "eval_interval": 60,
    }
    _train("ner_tagger", target, options, "--no_pretrain")


def _train(trainer: str, target: Path, options: dict[str, object], *switches: str) -> None:
    where = {"shorthand": "en_tiny", "save_dir": target, "save_name": "tiny.pt"}
    words = [
        word for name, value in (options | where).items() for word in (f"--{name}", str(value))
    ]
    importlib.import_module(f"stanza.models.{trainer}").main([*words, *switches, "--cpu"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
