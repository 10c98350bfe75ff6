"""Prompt templates: files with front matter, a loader for sets of them, and fences around texts."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Literal

from qrmem.errors import PromptError
from qrmem.text.front_matter import split_front_matter
from qrmem.types.shown import fenced

if TYPE_CHECKING:
    from pydantic import BaseModel

DIVIDER = "=== user ==="
"""The line of a template that ends its constant part; it is optional."""
_WORD = re.compile(r"\w+")
_OPTIONAL = re.compile(r"\{\?(.*?)\?\}", re.DOTALL)
Form = Literal["json", "text"]
_FIELDS = ("name", "version", "stage", "reply", "slots", "extra", "form")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A prompt from a template file.

    The text between `{?` and `?}` is left out if a slot in it is empty.

    Attributes:
        name: name of the file, by which callers request the prompt.
        version: changes with the wording; records of calls contain it.
        stage: stage in which its calls are counted.
        reply: name of the reply's model in `qrmem.prompts.replies`; `text` for a plain reply.
        slots: slots that the caller fills, and every template of this name must have.
        extra: slots that a template may have.
        form: `json` sends the reply's schema with the request. `text` sends none; the reply is
            parsed in the form that the template describes, or else as JSON.
        system: the part that is the same in every call, so that servers can cache it; may be empty.
        template: the part with slots.
    """

    name: str
    stage: str
    reply: str
    slots: frozenset[str]
    extra: frozenset[str] = frozenset()
    version: str = "1"
    form: Form = "json"
    system: str = ""
    template: str = ""

    @property
    def label(self) -> str:
        """Name and version, in the form of records."""
        return f"{self.name}.v{self.version}"

    @property
    def output(self) -> "type[BaseModel] | None":
        """The Pydantic model of the reply, `None` for a plain reply."""
        if self.reply == "text":
            return None
        from qrmem.prompts import replies

        model: type[BaseModel] = getattr(replies, self.reply)
        return model

    def user(self, values: Mapping[str, object]) -> str:
        """Fill the slots; a `$` in the values is not changed.

        Raises:
            PromptError: the values do not match the slots.
        """
        if values.keys() != self.slots | self.extra:
            raise PromptError(
                f"{self.label} is filled with {_list_in_words(values)}: {self._wanted}"
            )
        texts = {name: str(value) for name, value in values.items()}

        def kept(match: re.Match[str]) -> str:
            return match[1] if all(texts[name] for name in _slots(match[1])) else ""

        return Template(_OPTIONAL.sub(kept, self.template)).substitute(texts)

    def check(self, where: str) -> None:
        """Check that the template has exactly the slots that are filled.

        Args:
            where: the file, for the message.

        Raises:
            PromptError: it has other slots.
        """
        slots = set(_slots(self.template))
        if missing := self.slots - slots:
            raise PromptError(f"{where} lacks the slot ${_list_in_words(missing)}; {self._wanted}")
        if unknown := slots - self.slots - self.extra:
            raise PromptError(
                f"{where} has an unknown slot ${_list_in_words(unknown)}; {self._wanted}"
            )
        if _slots(self.system):
            raise PromptError(f"{where}: the part before {DIVIDER!r} has a slot; move it below")

    @property
    def _wanted(self) -> str:
        also = f", and it may have {_list_in_words(self.extra)}" if self.extra else ""
        return f"the slots of {self.name} are {_list_in_words(self.slots)}{also}"


@dataclass(frozen=True, slots=True)
class PromptSet(Mapping[str, Prompt]):
    """The prompts of a run, by name.

    Attributes:
        name: name of the set; "" is the default.
    """

    name: str
    prompts: Mapping[str, Prompt] = field(repr=False)

    def __getitem__(self, name: str) -> Prompt:
        """Return a prompt.

        Raises:
            PromptError: there is no prompt of that name.
        """
        if name not in self.prompts:
            raise PromptError(
                f"there is no prompt {name!r}; there are {_list_in_words(self.prompts)}"
            )
        return self.prompts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.prompts)

    def __len__(self) -> int:
        return len(self.prompts)

    @property
    def checksum(self) -> str:
        """Digest of the wording; it does not depend on the set's name."""
        shape = [
            (p.label, p.stage, p.reply, p.form, p.system, p.template)
            for _, p in sorted(self.prompts.items())
        ]
        return hashlib.sha256(repr(shape).encode()).hexdigest()[:12]

    @property
    def label(self) -> str:
        """Name and checksum, for trails, status and results: `paper 3f2a9c1b0d4e`."""
        names = (Path(part).name for part in self.name.split(",") if part)
        return f"{'+'.join(names) or 'default'} {self.checksum}"


@cache
def load_prompts(named: str = "") -> PromptSet:
    """Load and check a set of prompts; a process reads each set once.

    Args:
        named: "" is the default set. A name such as `paper`, or a folder of templates `NAME.md`,
            replaces templates of the same names. Several are separated by commas; later ones
            replace earlier ones.

    Raises:
        PromptError: the set or folder does not exist, or a template has an unknown name or wrong
            slots.
    """
    prompts = dict(_default())
    for part in filter(None, (part.strip() for part in named.split(","))):
        prompts |= _templates(_folder(part), prompts)
    return PromptSet(named, prompts)


def stage_names() -> list[str]:
    """Return the names of all stages with calls of a chat model."""
    return sorted({prompt.stage for prompt in _default().values()})


@cache
def _default() -> Mapping[str, Prompt]:
    return _templates(_packaged(), {})


def _packaged() -> Traversable:
    return files("qrmem.prompts") / "templates"


def _folder(named: str) -> Traversable:
    packaged = _packaged() / named
    if named.isidentifier() and packaged.is_dir():
        return packaged
    if not Path(named).is_dir():
        sets = _list_in_words(one.name for one in _packaged().iterdir() if one.is_dir())
        raise PromptError(f"prompts={named}: there is no folder and no set ({sets}) of this name")
    return Path(named)


def _templates(folder: Traversable, known: Mapping[str, Prompt]) -> dict[str, Prompt]:
    templates = {}
    for file in folder.iterdir():
        if file.name.endswith(".md") and file.name != "README.md":
            name = file.name.removesuffix(".md")
            if known and name not in known:
                raise PromptError(f"{file}: no prompt is called {name!r}: {_list_in_words(known)}")
            templates[name] = _read(name, file, known.get(name))
    if not templates:
        raise PromptError(f"{folder} holds no template NAME.md; names are {_list_in_words(known)}")
    return templates


def _read(name: str, file: Traversable, base: Prompt | None) -> Prompt:
    try:
        fields, text = split_front_matter(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise PromptError(f"{file} cannot be read: {exc}") from exc
    if unknown := fields.keys() - set(_FIELDS):
        raise PromptError(
            f"{file}: no field is called {_list_in_words(unknown)}: {_list_in_words(_FIELDS)}"
        )
    system, divider, user = text.partition(f"\n{DIVIDER}\n")
    if not divider:
        system, user = "", text
    if base is None:
        slots, extra = (frozenset(_WORD.findall(fields.get(f, ""))) for f in ("slots", "extra"))
        stage, reply = fields["stage"], fields["reply"]
        base = Prompt(name=name, stage=stage, reply=reply, slots=slots, extra=extra)
    for key in ("name", "stage", "reply"):
        if fields.get(key, getattr(base, key)) != getattr(base, key):
            raise PromptError(f"{file}: the {key} of {name} is {getattr(base, key)}")
    form: Form = "text" if fields.get("form") == "text" else "json"
    if fields.get("form", form) != form:
        raise PromptError(f"{file}: form is {fields['form']!r}; choose json or text")
    version = fields.get("version", base.version)
    prompt = replace(base, version=version, form=form, system=system.strip(), template=user.strip())
    prompt.check(str(file))
    return prompt


def _slots(text: str) -> list[str]:
    return Template(text).get_identifiers()


def _list_in_words(names: object) -> str:
    return ", ".join(sorted(map(str, names))) or "none"  # type: ignore[call-overload]


def fenced_if(text: str) -> str:
    """Put a text between tags; return "" for an empty text."""
    return fenced(text) if text else ""
