"""Puts Mermaid into the site, so that its diagrams are drawn without a request to elsewhere.

A hook of MkDocs. The theme draws with the script that a page has, and else loads one from a CDN.
The script has 3.5 MB, so it is not in the repository: npm fetches it once, and its checksum is
compared.
"""

import hashlib
import logging
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

VERSION = "11.17.2"
SHA256 = "581ed7d74bd9048d0e3a91363927d72ef22942d7722546b27f7cc29e35390eb8"
SCRIPT = "assets/javascripts/mermaid.min.js"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
CACHED = _CACHE / "qrmem" / f"mermaid-{VERSION}.min.js"
DIAGRAM = '<pre class="mermaid">'

log = logging.getLogger("mkdocs.plugins.mermaid")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the script to the files of the site."""
    try:
        files.append(File.generated(config, SCRIPT, content=_script()))
    except (OSError, subprocess.SubprocessError, ValueError) as exc:
        log.warning("diagrams will be drawn by a script of a CDN: npm gave no Mermaid (%s)", exc)
    return files


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Have the pages with diagrams load it, before the theme's own script."""
    if DIAGRAM not in output or not CACHED.exists():
        return output
    address = get_relative_url(SCRIPT, page.url)
    return output.replace("</head>", f'<script src="{address}"></script></head>', 1)


def _script() -> bytes:
    if not CACHED.exists():
        script = _fetched()
        CACHED.parent.mkdir(parents=True, exist_ok=True)
        CACHED.write_bytes(script)
    script = CACHED.read_bytes()
    if hashlib.sha256(script).hexdigest() != SHA256:
        CACHED.unlink()
        raise ValueError(f"the checksum of Mermaid {VERSION} is another one")
    return script


def _fetched() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            ["npm", "pack", f"mermaid@{VERSION}", "--silent", "--pack-destination", folder],
            check=True,
            capture_output=True,
            timeout=300,
        )
        (packed,) = Path(folder).glob("*.tgz")
        with tarfile.open(packed) as members:
            script = members.extractfile("package/dist/mermaid.min.js")
            assert script is not None
            return script.read()
