"""The public names are deliberate, and the synchronous face is the asynchronous one."""

import inspect

import qrmem
import qrmem.sync
from qrmem import memory as facade


def test_every_public_name_can_be_had() -> None:
    for name in qrmem.__all__:
        assert getattr(qrmem, name) is not None
    assert sorted(qrmem.__all__) == list(qrmem.__all__)


def test_public_names_are_documented() -> None:
    for name in qrmem.__all__:
        assert inspect.getdoc(getattr(qrmem, name)), name
    for name, method in public_methods(facade.Memory).items():
        assert inspect.getdoc(method), name


ASYNC_ONLY = {"listening"}
"""What has no use without a loop of one's own."""
SYNC_ONLY = {"call", "acall"}
"""What runs awaited functions on the loop of the memory's thread."""


def public_methods(kind: type) -> dict[str, object]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name: method for name, method in found if not name.startswith("_")}


def test_the_synchronous_memory_has_the_same_methods_with_the_same_arguments() -> None:
    awaited = public_methods(facade.Memory)
    plain = public_methods(qrmem.sync.Memory)
    for name in SYNC_ONLY:
        del plain[name]
    assert set(plain) == set(awaited) - ASYNC_ONLY
    for name, method in plain.items():
        ours = inspect.signature(method).parameters.values()  # type: ignore[arg-type]
        theirs = inspect.signature(awaited[name]).parameters.values()  # type: ignore[arg-type]
        assert [(p.name, p.kind, p.default) for p in ours] == [
            (p.name, p.kind, p.default) for p in theirs
        ], name


def test_both_open_functions_take_the_same_arguments() -> None:
    ours = inspect.signature(qrmem.sync.open).parameters
    theirs = inspect.signature(facade.open).parameters
    assert list(ours) == list(theirs)
