"""What other processes do: read segments as the local reasoner of this one would."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby

from qrmem.apart import halves
from qrmem.graph.disambiguation import NameUse, Resolution, resolve
from qrmem.graph.view import Read, Rows, decided, rows_of
from qrmem.language.local import LocalReasoner
from qrmem.llm.tokenizers import open_tokenizer
from qrmem.types import Contribution, Job, MergeDecision, Segment


@dataclass(frozen=True, slots=True)
class MadeWith:
    """What the reasoner is made with; see `LocalReasoner`.

    Attributes:
        tokenizer: its name; a summary has so many tokens.
    """

    questions_per_600: int
    tokenizer: str


@dataclass(frozen=True, slots=True)
class Given:
    """Segments to read, and what the reasoner is made with."""

    jobs: Sequence[Job]
    made_with: MadeWith


@dataclass(frozen=True, slots=True)
class Made:
    """What another process made of some segments, by their ids.

    Attributes:
        rows: those of the view, of segments that are read for the last time.
    """

    contributions: Mapping[str, Contribution] = field(default_factory=dict)
    rows: Mapping[str, Rows] = field(default_factory=dict)


Work = Callable[[Given], Coroutine[None, None, Made]]
"""`extract` or `supplement`."""


async def extract(given: Given) -> Made:
    """Read segments for the first time."""
    reasoner = _reasoner(given.made_with)
    made = [await reasoner.extract(job.segment, job.reading) for job in given.jobs]
    return Made({contribution.segment_id: contribution for contribution in made})


async def supplement(given: Given) -> Made:
    """Read those that have accepted questions again, and make the rows of all."""
    reasoner = _reasoner(given.made_with)
    contributions, rows = {}, {}
    for job in given.jobs:
        assert job.known is not None
        again = await _again(reasoner, job, job.known, job.questions)
        if again:
            contributions[job.segment.id] = again
        rows[job.segment.id] = _rows(job.segment, job.known, again, job.questions)
    return Made(contributions, rows)


@dataclass(frozen=True, slots=True)
class Whole:
    """What another process made of a segment of a document that it was given whole.

    Attributes:
        summary: of the document.
        questions: those that were accepted.
        again: the reading with them; `None` where there are none.
    """

    summary: str
    first: Contribution
    questions: tuple[str, ...]
    again: Contribution | None
    rows: Rows


async def read(given: Given) -> Mapping[str, Whole]:
    """Read whole documents, as a build does: summary, first reading, accepted questions, rows."""
    reasoner = _reasoner(given.made_with)
    found = {}
    for _, own in groupby(given.jobs, key=lambda job: job.segment.document_id):
        jobs = list(own)
        segments = [job.segment for job in jobs]
        title = jobs[0].reading.title
        summary = await reasoner.summarise(title, segments) if len(jobs) > 1 else ""
        firsts = [await reasoner.extract(job.segment, job.reading) for job in jobs]
        for job, first, asked in zip(jobs, firsts, decided(firsts), strict=True):
            again = await _again(reasoner, job, first, asked)
            rows = _rows(job.segment, first, again, asked)
            found[job.segment.id] = Whole(summary, first, asked, again, rows)
    return found


@dataclass(frozen=True, slots=True)
class Names:
    """Names to resolve; see `qrmem.graph.disambiguation.resolve`."""

    uses: Sequence[NameUse]
    decisions: Sequence[MergeDecision]
    similar: Sequence[tuple[str, str, float]]


async def name(given: Names) -> Resolution:
    """Resolve names."""
    return resolve(given.uses, given.decisions, given.similar, mapped=halves.mapped)


async def _again(
    reasoner: LocalReasoner, job: Job, first: Contribution, questions: Sequence[str]
) -> Contribution | None:
    if not questions:
        return None
    reading = replace(job.reading, tagged=first.mentions)
    return await reasoner.supplement(job.segment, reading, first, questions)


def _rows(
    segment: Segment, first: Contribution, again: Contribution | None, questions: tuple[str, ...]
) -> Rows:
    return rows_of(Read(segment, (first, again) if again else (first,), questions))


@cache
def _reasoner(made_with: MadeWith) -> LocalReasoner:
    return LocalReasoner(
        open_tokenizer(made_with.tokenizer), questions_per_600=made_with.questions_per_600
    )
