"""A file that was made and into which nothing came goes again."""

import sqlite3
from pathlib import Path
from urllib.parse import quote

_UNCOUNTED = ("namespace", "sqlite_sequence")


def vacate(path: Path) -> bool:
    """Remove a memory's file if it holds nothing but the names of namespaces.

    Nobody else may have it open; whoever opens it at that moment finds it gone and makes it anew.

    Returns:
        Whether it is gone.
    """
    uri = f"file:{quote(str(path.absolute()))}?mode=rw"
    db = sqlite3.connect(uri, uri=True, timeout=0, isolation_level=None)
    try:
        # refused while another connection has the file; also removes the files beside it
        if db.execute("PRAGMA journal_mode = DELETE").fetchone() != ("delete",):
            return False
        db.execute("BEGIN EXCLUSIVE")
        if _holds_anything(db):
            return False
        path.unlink()
    except (sqlite3.Error, OSError):  # it is in use, or may not be removed: it stays
        return False
    finally:
        db.close()
    return True


def _holds_anything(db: sqlite3.Connection) -> bool:
    tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    kept = [name for (name,) in tables if name not in _UNCOUNTED]
    return any(db.execute(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone() for name in kept)
