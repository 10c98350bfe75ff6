"""Which programs hold a write lock on a file, where the system tells."""

from pathlib import Path

_LOCKS = Path("/proc/locks")


def writers(path: str) -> list[str]:
    """Return `process 123 (name)` for each program that holds the database; empty if unknown."""
    try:
        inodes = {str(Path(path + end).stat().st_ino) for end in ("", "-shm") if _is(path + end)}
        lines = _LOCKS.read_text().splitlines()
    except OSError:
        return []
    pids = {pid for kind, pid, inode in map(_parsed, lines) if kind == "WRITE" and inode in inodes}
    return [f"process {pid}{_name(pid)}" for pid in sorted(pids)]


def _is(path: str) -> bool:
    return Path(path).exists()


def _parsed(line: str) -> tuple[str, str, str]:
    """Return kind, process and inode of `1: POSIX ADVISORY WRITE 123 08:01:456 120 120`."""
    fields = [field for field in line.split() if field != "->"]
    return (fields[3], fields[4], fields[5].rpartition(":")[2]) if len(fields) > 5 else ("", "", "")


def _name(pid: str) -> str:
    try:
        return f" ({Path('/proc', pid, 'comm').read_text().strip()})"
    except OSError:
        return ""
