"""Jobs of `qrmem serve`: long adds, each stored in a file, so that a restart resumes them.

The memory's ledger records which segments are read, so an `add` of the same documents resumes
where it stopped. The file of a job therefore holds its documents, but no progress.
"""

import asyncio
import json
import uuid
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from pydantic import TypeAdapter

from qrmem.errors import (
    CapReached,
    MissingError,
    NotFound,
    QrmemError,
    StoreConflict,
    StoreUnavailable,
    UsageError,
    clean_name,
)
from qrmem.io.place import unwritable, write_whole
from qrmem.memory import Memory
from qrmem.types import AddReport, Document, Event
from qrmem.types.turns import USER_KEY
from qrmem.web.guard import log
from qrmem.web.response_models import AddJob

AT_ONCE = 2
"""Maximum number of jobs of a namespace that run at the same time; the others wait."""
WAITING = 20
"""Maximum number of unfinished jobs of one user, or of a namespace's other tokens."""
ENDED = 100
"""Maximum number of finished jobs that are kept; older ones are deleted."""
_WARNINGS = 20
_BEGINS = b'{"job": '


@dataclass(slots=True)
class _Job:
    """A job without its documents.

    Attributes:
        users: users of its documents.
        segments: number of segments to read that are known since the server started; `read` of
            them are read.
    """

    job: str
    namespace: str
    user: str
    users: list[str]
    update: bool
    documents: int
    created: str
    state: str = "waiting"
    ended: str = ""
    error: str = ""
    segments: int = 0
    read: int = 0
    warnings: list[str] = field(default_factory=list)

    def __call__(self, event: Event) -> None:
        """Update the progress by one event of the `add`."""
        if event.kind == "document":
            self.segments += int(event.data.get("segments", 0))
        elif event.kind == "segment":
            self.read += int(event.data.get("count", 1))
        elif event.kind == "warning" and event.data.get("message"):
            self.warnings = [*self.warnings, str(event.data["message"])][-_WARNINGS:]

    def shown(self, report: Mapping[str, Any] | None = None) -> AddJob:
        """Return the job in the form of a reply."""
        return AddJob(
            id=self.job,
            state=self.state,
            user=self.user,
            created=self.created,
            ended=self.ended,
            documents=self.documents,
            segments=self.segments,
            read=self.read,
            warnings=tuple(self.warnings),
            error=self.error,
            report=report,  # type: ignore[arg-type]  # as JSON has it
        )


class Jobs:
    """The jobs of one server, in a folder that only this server uses."""

    def __init__(self, folder: Path | None) -> None:
        """Prepare; the folder is not read yet.

        Args:
            folder: created with the first job; with `None` every job is refused.
        """
        self._folder = folder
        self._memories: Mapping[str, Memory] = {}
        self._jobs: dict[str, _Job] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._places: dict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(AT_ONCE))
        self._claiming = asyncio.Lock()
        self._lock: FileLock | None = None

    @asynccontextmanager
    async def running(self, memories: Mapping[str, Memory]) -> AsyncIterator[None]:
        """Resume the unfinished jobs; on exit stop them, to be resumed at the next start.

        Args:
            memories: namespace to memory; jobs of other namespaces are left alone.
        """
        self._memories = memories
        try:
            if memories:
                with suppress(StoreConflict):  # the error goes to the client that asks for jobs
                    await self._claim_folder()
            yield
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            if self._lock is not None:
                self._lock.release()

    async def start(
        self, memory: Memory, user: str, documents: Sequence[Document], *, update: bool
    ) -> AddJob:
        """Store a job and start it.

        Args:
            memory: the memory that reads the documents.
            user: the user of the client's token; "" for a token of the whole namespace.
            documents: documents with ids.
            update: replace documents that exist.

        Raises:
            CapReached: `WAITING` jobs are unfinished.
            MissingError: the server has no folder for jobs.
            StoreConflict: another server uses the folder.
            StoreUnavailable: the folder cannot be written.
        """
        if self._folder is None:
            raise MissingError("this service has no folder for jobs: start it with --jobs FOLDER")
        await self._claim_folder(create=True)
        job = _Job(
            job=uuid.uuid4().hex,
            namespace=memory.settings.namespace,
            user=user,
            users=sorted({str(one.metadata.get(USER_KEY, "")) for one in documents} - {""}),
            update=update,
            documents=len(documents),
            created=_now(),
        )
        ended = self._make_room(job)
        self._jobs[job.job] = job  # before any await, so that the next job counts it
        try:
            await asyncio.to_thread(
                self._write, job, texts=[_document_data(one) for one in documents]
            )
        except BaseException:
            del self._jobs[job.job]
            raise
        for old in ended:
            await self._forget(old)
        self._begin(memory, job)
        return job.shown()

    async def listed(self, memory: Memory, user: str) -> list[AddJob]:
        """Return the jobs that a token may see, newest first, without reports.

        Raises:
            StoreConflict: another server uses the folder.
        """
        await self._claim_folder()
        return [job.shown() for job in self._of(memory.settings.namespace, user)]

    def counts(self) -> Mapping[str, int]:
        """Return the number of jobs in each state, over all namespaces."""
        return Counter(job.state for job in self._jobs.values())

    async def one(self, memory: Memory, user: str, id: str) -> AddJob:
        """Return a job, with its report if it has ended.

        Raises:
            NotFound: the token may see no job with this id.
            StoreConflict: another server uses the folder.
        """
        await self._claim_folder()
        job = self._find(memory, user, id)
        job_kept = await asyncio.to_thread(self._read, job) if job.ended else {}
        return job.shown(job_kept.get("report"))

    async def cancel(self, memory: Memory, user: str, id: str) -> AddJob:
        """Cancel a job; the segments that it read are kept. A finished job is not changed.

        Raises:
            NotFound: the token may see no job with this id.
            StoreConflict: another server uses the folder.
        """
        await self._claim_folder()
        job = self._find(memory, user, id)
        await self._stop(job)
        return job.shown()

    async def forget(self, memory: Memory, user: str) -> None:
        """Cancel and delete all jobs with documents of a user.

        Raises:
            StoreConflict: another server uses the folder, and would add the documents again.
        """
        await self._claim_folder()
        user = clean_name(user, "user")
        for job in self._of(memory.settings.namespace):
            if user in (job.user, *job.users):
                await self._stop(job)
                await self._forget(job)

    def _find(self, memory: Memory, user: str, id: str) -> _Job:
        job = self._jobs.get(id)
        if job is None or job not in self._of(memory.settings.namespace, user):
            raise NotFound(f"no job {id!r}")
        return job

    def _of(self, namespace: str, user: str = "") -> list[_Job]:
        jobs_found = [
            job
            for job in self._jobs.values()
            if job.namespace == namespace and user in ("", job.user)
        ]
        return sorted(jobs_found, key=lambda job: (job.created, job.job), reverse=True)

    def _make_room(self, job: _Job) -> list[_Job]:
        """Return the old jobs to delete before a new one.

        Raises:
            CapReached: too many jobs are unfinished.
        """
        same = [one for one in self._of(job.namespace) if one.user == job.user]
        if sum(not one.ended for one in same) >= WAITING:
            raise CapReached(f"{WAITING} jobs have not ended yet; wait, or cancel one")
        return [one for one in same if one.ended][ENDED:]

    # --- work -----------------------------------------------------------------------------------

    async def _resume(self) -> None:
        for job in await asyncio.to_thread(self._load):
            self._jobs[job.job] = job
        for job in sorted(self._jobs.values(), key=lambda job: (job.created, job.job)):
            if not job.ended and job.namespace in self._memories:
                self._begin(self._memories[job.namespace], job)

    def _begin(self, memory: Memory, job: _Job) -> None:
        task = asyncio.create_task(self._work(memory, job))
        self._tasks[job.job] = task
        task.add_done_callback(lambda _: self._tasks.pop(job.job, None))

    async def _work(self, memory: Memory, job: _Job) -> None:
        async with self._places[job.namespace]:
            job.state = "running"
            report: dict[str, Any] | None = None
            state, error = "failed", ""
            try:
                texts = (await asyncio.to_thread(self._read, job))["texts"]
                documents = [Document(**one) for one in texts]
                if job.user and job.update:
                    await _check_owner(memory, job.user, documents)
                add_report = await memory.listening(job).add(documents, update=job.update)
                report, state, error = asdict(add_report), *_outcome(add_report)
            except QrmemError as exc:
                error = exc.public(memory.location)
            except Exception as exc:
                log(f"a job failed: {exc!r}")
                error = f"the service failed: {type(exc).__name__}"
            await self._end(job, state, error, report)

    async def _stop(self, job: _Job) -> None:
        if (task := self._tasks.get(job.job)) is not None:
            task.cancel()
            await asyncio.wait([task])
        if not job.ended:
            await self._end(job, "cancelled")

    async def _end(
        self, job: _Job, state: str, error: str = "", report: Mapping[str, Any] | None = None
    ) -> None:
        ended = replace(job, state=state, error=error, ended=_now())
        try:
            await asyncio.to_thread(self._write, ended, report=report)
        except QrmemError as exc:
            log(str(exc))  # the next start runs it again, at no cost
        job.state, job.error, job.ended = ended.state, ended.error, ended.ended

    # --- files ----------------------------------------------------------------------------------

    async def _claim_folder(self, *, create: bool = False) -> None:
        """Lock the folder and resume its jobs, unless that is done or there is no folder.

        Raises:
            StoreConflict: another server uses the folder.
        """
        async with self._claiming:
            folder = self._folder
            if self._lock is not None or folder is None:
                return
            if create or await asyncio.to_thread(folder.is_dir):
                self._lock = await asyncio.to_thread(_locked, folder)
                await self._resume()

    def _path(self, job: _Job) -> Path:
        assert self._folder is not None
        return self._folder / f"{job.job}.json"

    def _write(self, job: _Job, **more: Any) -> None:
        data = json.dumps(asdict(job) | more).encode()
        write_whole(self._path(job), data, _BEGINS, "a job")

    def _read(self, job: _Job) -> dict[str, Any]:
        try:
            return dict(json.loads(self._path(job).read_bytes()))
        except (OSError, ValueError) as exc:
            raise StoreUnavailable(f"the file of job {job.job} cannot be read: {exc}") from None

    def _load(self) -> list[_Job]:
        assert self._folder is not None
        jobs_found = []
        for path in self._folder.glob("*.json"):
            try:
                if path.is_symlink() or not path.is_file():
                    raise ValueError("qrmem did not write it")
                job = TypeAdapter(_Job).validate_json(path.read_bytes(), strict=True)
                if job.job != path.stem:  # its file would be elsewhere
                    raise ValueError("it has another name than its file")
            except (OSError, ValueError) as exc:
                log(f"{path} is not a job: {exc!r}")
                continue
            if not job.ended:
                job.state, job.segments, job.read = "waiting", 0, 0
            jobs_found.append(job)
        return jobs_found

    async def _forget(self, job: _Job) -> None:
        self._jobs.pop(job.job, None)
        await asyncio.to_thread(self._path(job).unlink, missing_ok=True)


def usual_folder(memory: Memory) -> Path | None:
    """Return the folder for jobs beside a memory that is a file; `None` for other memories."""
    file = Path(memory.location)
    return file.with_name(f"{file.name}.jobs") if file.is_file() else None


def _locked(folder: Path) -> FileLock:
    lock = FileLock(folder / ".lock", thread_local=False)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire(blocking=False)
    except Timeout:
        raise StoreConflict(
            "another server runs the jobs of this memory: send the request there, or end it"
        ) from None
    except OSError as exc:
        raise unwritable(folder, exc) from exc
    return lock


def _outcome(report: AddReport) -> tuple[str, str]:
    """Return the state of a job after its add, and its first problem."""
    if report.stopped:
        return "stopped", report.stopped
    error = ""
    if problems := report.problems:
        id, _, reason = problems[0]
        more = f" (and {len(problems) - 1} more: see the report)" if problems[1:] else ""
        error = f"{id}: {reason}{more}"
    is_kept = report.added or report.updated or report.unchanged
    return "done" if is_kept or not error else "failed", error


async def _check_owner(memory: Memory, user: str, documents: Sequence[Document]) -> None:
    """Refuse to replace a document with a user's id that belongs to somebody else.

    Raises:
        UsageError: there is such a document.
    """
    own_ids = {info.id for info in await memory.documents(where={USER_KEY: user})}
    for id in (one.id or "" for one in documents):
        if id not in own_ids:
            with suppress(NotFound):
                await memory.document(id)
                raise UsageError(f"document {id!r} exists, and does not belong to {user}")


def _document_data(document: Document) -> dict[str, Any]:
    return {name: getattr(document, name) for name in ("text", "title", "id", "metadata")}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
