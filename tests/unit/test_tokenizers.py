"""Tokenizers by name."""

import asyncio
import builtins
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import qrmem
from qrmem.config import Settings
from qrmem.errors import MissingError, UsageError
from qrmem.llm.tokenizers import LibraryTokenizer, open_tokenizer

WORDS = "the keeper wrote a name in the ledger and the tide went out"


@pytest.fixture
def hugging_face_file(tmp_path: Path) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=320, initial_alphabet=alphabet, special_tokens=["<s>"])
    tokenizer.train_from_iterator([WORDS] * 20, trainer)
    tokenizer.post_processor = processors.TemplateProcessing("<s> $A", None, [("<s>", 0)])
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=4)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def test_the_offline_counter_is_known_by_setting_and_by_recorded_name() -> None:
    assert open_tokenizer("builtin").name == "builtin-v1"
    assert open_tokenizer("builtin-v1").name == "builtin-v1"


def test_a_hugging_face_file_counts_without_specials_truncation_or_padding(
    hugging_face_file: Path,
) -> None:
    tokenizer = open_tokenizer(f"hf:{hugging_face_file}")
    assert tokenizer.name == f"hf:{hugging_face_file}"
    assert tokenizer.count("") == 0
    assert tokenizer.count("the") == 1
    assert tokenizer.count(WORDS) > 10
    assert tokenizer.count("<s>" + WORDS) > tokenizer.count(WORDS)
    cut = tokenizer.cut(WORDS, 6)
    assert WORDS.startswith(cut)
    assert tokenizer.count(cut) == 6


async def test_a_memory_counted_by_a_file_is_used_from_other_folders_and_asked_without_it(
    hugging_face_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(hugging_face_file.parent)
    settings = Settings(
        memory=str(tmp_path / "m.db"), embedder="none", tokenizer=f"hf:{hugging_face_file.name}"
    )
    async with qrmem.open(settings=settings) as memory:
        await memory.add(qrmem.Document("Ahab lost a leg near Japan.", id="a"))
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    settings = settings.with_(tokenizer="builtin")
    async with qrmem.open(settings=settings) as memory:
        await memory.add(qrmem.Document("Ishmael met Queequeg in New Bedford.", id="b"))
    await asyncio.to_thread(hugging_face_file.unlink)
    open_tokenizer.cache_clear()
    async with qrmem.open(settings=settings) as memory:
        answer = await memory.ask("Who lost a leg near Japan?")
        assert "Ahab lost a leg" in answer.text
        with pytest.raises(UsageError, match=f"no such tokenizer file: {hugging_face_file}"):
            await memory.add(qrmem.Document("Stubb ate a steak at night.", id="c"))


@pytest.mark.parametrize(
    "name", ["", "gpt2", "tiktoken:", "hf:", "tiktoken:none_such", "builtin-v0"]
)
def test_an_unknown_name_is_refused_with_the_choices(name: str) -> None:
    with pytest.raises(UsageError, match="choose"):
        open_tokenizer(name)


def test_a_file_that_is_missing_or_no_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such tokenizer file"):
        open_tokenizer(f"hf:{tmp_path / 'none.json'}")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(UsageError, match=r"is not a tokenizer\.json"):
        open_tokenizer(f"hf:{tmp_path / 'bad.json'}")


def test_tiktoken_without_its_file_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    import tiktoken.registry

    def no_file() -> dict[str, Any]:
        raise OSError("no route to host")

    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    tiktoken.list_encoding_names()
    constructors = tiktoken.registry.ENCODING_CONSTRUCTORS
    assert constructors is not None
    monkeypatch.setitem(constructors, "r50k_base", no_file)
    with pytest.raises(MissingError, match="TIKTOKEN_CACHE_DIR") as caught:
        open_tokenizer("tiktoken:r50k_base")
    assert "\n" not in str(caught.value)


def test_tiktoken_counts_special_tokens_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    import tiktoken

    letters = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
    encoding = tiktoken.Encoding(
        "own", pat_str=r"\w+|\W", mergeable_ranks=letters, special_tokens={"<|end|>": 300}
    )
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: encoding)
    tokenizer = open_tokenizer.__wrapped__("tiktoken:cl100k_base")
    assert tokenizer.name == "tiktoken:cl100k_base"
    assert tokenizer.count("abab") == 2
    assert tokenizer.count("<|end|>") == 7


@pytest.mark.parametrize(
    ("name", "package"), [("tiktoken:gpt2", "tiktoken"), ("hf:x", "tokenizers")]
)
def test_without_the_extra_the_message_says_how_to_get_it(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def refuse(module: str, *rest: object, **more: object) -> object:
        if module.split(".")[0] == package:
            raise ImportError(module)
        return real(module, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", refuse)
    monkeypatch.delitem(sys.modules, package, raising=False)
    with pytest.raises(MissingError, match=r'-m pip install "qrmem\[tokenizers\]"'):
        open_tokenizer.__wrapped__(name)


@given(st.text(st.sampled_from("ab é\n"), max_size=300), st.integers(0, 30))
def test_a_cut_is_the_longest_prefix_within_the_limit(text: str, limit: int) -> None:
    tokenizer = LibraryTokenizer("own", lambda piece: -(-len(piece) // 3))
    cut = tokenizer.cut(text, limit)
    assert cut == text[: 3 * limit]


def test_a_long_text_is_counted_in_chunks() -> None:
    longest: list[int] = []

    def count(piece: str) -> int:
        longest.append(len(piece))
        return len(piece)

    tokenizer = LibraryTokenizer("own", count)
    assert tokenizer.count("x" * 100_001) == 100_001
    assert tokenizer.count("word " * 30_000) == 150_000
    assert max(longest) <= 20_000
