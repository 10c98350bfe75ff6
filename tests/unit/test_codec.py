"""Records survive JSON unchanged, also in a format of an earlier version."""

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qrmem.graphstore.codec import DecodeError, dumps, from_plain, loads, to_plain
from qrmem.types import (
    CallRecord,
    Citation,
    Contribution,
    Document,
    Part,
    ScoredEdge,
    ScoredSegment,
    StageUsage,
    Step,
    Trail,
    Usage,
)


@pytest.mark.parametrize("kind", [Trail, Contribution, Document, CallRecord])
@settings(max_examples=20, deadline=None, derandomize=True)
@given(data=st.data())
def test_any_record_is_kept_as_it_was_or_refused(kind: type[Any], data: st.DataObject) -> None:
    record = data.draw(st.from_type(kind))
    try:
        found = loads(dumps(record), kind)
    except DecodeError as exc:  # a number that no store keeps
        assert "number" in str(exc)  # noqa: PT017
    else:
        assert dumps(found) == dumps(record)


def test_a_record_with_all_that_it_can_hold_comes_back_equal() -> None:
    edge = ScoredEdge("a|b", "a", "b", "a \ud800 b", 0.25, taken=True)
    step = Step(1, "read", ("a",), (edge,), (ScoredSegment("s", 0.5, 3),), reason="日本")
    usage = Usage(online={"judge": StageUsage(1, 2, 3, cost=0.5)})
    cited = (Citation("d", "s", 0, 1, "a", whole=True),)
    trail = Trail("t", "q", "reflection", 9, "forced", "a", (step,), usage, cited, ("x", "y"))
    assert loads(dumps(trail), Trail) == trail
    document = Document("a", "T", "d", {"a": 1, "b": True, "c": 0.5, "d": "e"}, (Part(0, "i"),))
    assert loads(dumps(document), Document) == document


def test_fields_with_their_default_are_left_out() -> None:
    assert to_plain(Contribution("s", "extraction", tagger="rules")) == {
        "segment_id": "s",
        "kind": "extraction",
        "tagger": "rules",
    }


def test_an_older_record_can_be_read_and_a_newer_one_is_refused() -> None:
    older = {"segment_id": "s", "kind": "oriented"}
    assert from_plain(older, Contribution) == Contribution("s", "oriented")
    with pytest.raises(DecodeError, match="mood"):
        from_plain({**older, "mood": 1}, Contribution)
    with pytest.raises(DecodeError, match="segment_id"):
        from_plain({"kind": "oriented"}, Contribution)


def test_numpy_scalars_are_kept_as_numbers() -> None:
    scored = ScoredSegment("s", np.float32(0.5), 3)  # type: ignore[arg-type]
    assert json.loads(dumps(scored)) == {"segment_id": "s", "score": 0.5, "tokens": 3}
    assert loads(dumps(scored), ScoredSegment) == replace(scored, score=0.5)


def test_a_type_that_has_no_json_form_is_refused() -> None:
    @dataclass(frozen=True)
    class Odd:
        inside: set[int]

    with pytest.raises(TypeError):
        from_plain({"inside": [1]}, Odd)
    with pytest.raises(TypeError):
        dumps(Odd({1}))
