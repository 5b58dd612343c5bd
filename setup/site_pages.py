"""Adds what lies outside of docs/ to the site: README as its first page, CONTRIBUTING and CHANGELOG.

Links between these files and docs/ are written for the repository; here all pages lie in one folder. Links to files
that are no pages (specs, rules) become code.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md"}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, with their links as the site needs them."""
    for source, target in PAGES.items():
        text = _LINK.sub(_relink, (ROOT / source).read_text(encoding="utf-8"))
        files.append(File.generated(config, target, content=text))
    return files


def _relink(found: re.Match[str]) -> str:
    mark, text, target = found.groups()
    path, _, anchor = target.partition("#")
    inside = PAGES.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
    if inside is None:
        return f"{text} (`{path}`)"
    return f"{mark}[{text}]({inside}{'#' + anchor if anchor else ''})"
