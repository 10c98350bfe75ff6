"""What may hold a key or a password, and how it is shown."""

import re
from typing import NoReturn, Self


class Secret:
    """A key or password: shown as `***` everywhere but where it is used."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value itself; only adapters call this, when they connect."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __deepcopy__(self, memo: object) -> Self:
        return self  # `dataclasses.asdict` copies

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not pickled")


class Address(str):
    """A path or URL whose text shows no name, password or query; `reveal` gives all of it."""

    _secret: Secret

    def __new__(cls, value: str) -> Self:
        """Take an address as it was given."""
        made = super().__new__(cls, shown(value))
        made._secret = Secret(value)
        return made

    def reveal(self) -> str:
        """Return the whole address; only adapters call this, when they connect."""
        return self._secret.reveal()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Address):
            return self._secret == other._secret
        return str(self) == other

    def __hash__(self) -> int:
        return str.__hash__(self)

    def __deepcopy__(self, memo: object) -> Self:
        return self


def revealed(address: str) -> str:
    """Return the whole of an address; only what connects to it calls this."""
    return address.reveal() if isinstance(address, Address) else address


def shown(address: str) -> str:
    """Return an address without what may be secret: name and password, query and fragment.

    A password may hold any sign, and the address may lack its scheme or a slash.
    """
    scheme, mark, rest = address.partition("://")
    if not mark:
        return re.sub(r"(?s)^[^@\\]*:.*@", "***@", address)
    authority = rest.partition("/")[0]
    if "@" in authority or ":" in authority:
        rest = re.sub(r"(?s)^.*@", "***@", rest)
    rest = re.sub(r"(?s)#.+", "#***", rest)
    return scheme + mark + re.sub(r"([?&][^=&]*)=[^&#]+", r"\1=***", rest)
