"""Renders a page and reads it as strict XML, which finds every tag that is not closed and every sign not escaped."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock
from xml.etree import ElementTree

from knobscope.figures import Figure
from knobscope.specs import StudySpecs
from knobscope.stages.report import render_report

#: The cases of the simulated study.
ON_FLASH, ON_DISK = "sqlite/fast-flash/ycsb-a", "sqlite/slow-disk/ycsb-a"
XHTML = "{http://www.w3.org/1999/xhtml}"
SVG = "{http://www.w3.org/2000/svg}"


def words_of(element: ElementTree.Element) -> str:
    """Return all words in an element, with single plain spaces."""
    return " ".join("".join(element.itertext()).replace("\u00a0", " ").split())


@dataclass
class Page:
    source: str
    root: ElementTree.Element

    @property
    def text(self) -> str:
        """All words, with single plain spaces."""
        return words_of(self.root)

    def section(self, name: str) -> str:
        (found,) = (element for element in self.root.iter() if element.get("id") == name)
        return words_of(found)

    def all(self, tag: str, kind: str = "") -> list[ElementTree.Element]:
        """All elements with a tag, and of a class if that is named."""
        return [element for element in self.root.iter(XHTML + tag) if kind in ("", element.get("class"))]


def plain(text: str) -> str:
    """Return a text with plain spaces."""
    return re.sub(r"\s", " ", text)


def read_xml(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314 - we wrote it


def render_text(database: Path, specs: StudySpecs, folder: Path, **options: Any) -> Page:
    """Render a page without its pictures, which take most of the time."""
    with mock.patch.object(Figure, "svgs", return_value=[]):
        return render(database, specs, folder, **options)


def render(database: Path, specs: StudySpecs, folder: Path, **options: Any) -> Page:
    out = folder / "report.html"
    render_report(database, specs, out, **options)
    source = out.read_text(encoding="utf-8")
    assert source.lstrip().startswith("<!DOCTYPE html>")
    return Page(source, read_xml(source.split("<!DOCTYPE html>", 1)[1]))
