"""Adds to the site what lies outside of docs/: README as its first page, CONTRIBUTING, CHANGELOG, finished reports.

Links are written for the repository. Those to files that are no pages of the site (specs, rules) become code; a path of
a finished report in backticks, `results/STUDY/report.html`, becomes a link to a copy of it.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "CONTRIBUTING.md", "CHANGELOG.md": "CHANGELOG.md"}
_SOURCES = {target: source for source, target in PAGES.items()}
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")
_REPORT = re.compile(r"`(results/[\w/-]+\.html)`")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, and the reports that the gallery names and that are finished."""
    for source, target in PAGES.items():
        files.append(File.generated(config, target, content=(ROOT / source).read_text(encoding="utf-8")))
    for report in _REPORT.findall((ROOT / "docs/tutorials/gallery.md").read_text(encoding="utf-8")):
        if (ROOT / report).is_file():
            files.append(File.generated(config, report, abs_src_path=str(ROOT / report)))
    for asset in ("assets/iframe-worker.js", "assets/site.css"):
        files.append(File.generated(config, asset, abs_src_path=str(ROOT / "setup" / posixpath.basename(asset))))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Return the text of a page with its links as the site needs them."""
    site = page.file.src_uri
    source = _SOURCES.get(site, f"docs/{site}")

    def relink(match: re.Match[str]) -> str:
        mark, text, target = match.groups()
        path, _, anchor = target.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        inside = PAGES.get(file, file.removeprefix("docs/"))
        if file not in PAGES and not file.startswith("docs/"):
            return f"{text} (`{file}`)"
        return f"{mark}[{text}]({_relate(inside, site)}{'#' + anchor if anchor else ''})"

    def link_report(match: re.Match[str]) -> str:
        return f"[{match[1]}]({_relate(match[1], site)})" if files.get_file_from_path(match[1]) else match[0]

    return _REPORT.sub(link_report, _LINK.sub(relink, markdown))


def _relate(target: str, page: str) -> str:
    return posixpath.relpath(target, posixpath.dirname(page) or ".")
