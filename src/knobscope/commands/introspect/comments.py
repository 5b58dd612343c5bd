"""What the configuration file that a DBMS ships says of its settings, for one that does not describe them itself.

Such a file (redis.conf, valkey.conf) sets each setting once, often in a comment, below the paragraphs that explain it,
and has headings between rows of `#`. What stands between rows of dashes warns of something, and explains nothing.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

#: A description ends with the sentence that reaches this many characters: the file itself has the rest.
_ENOUGH = 200
#: A remark between two rows of dashes, or a row alone.
_BOX = re.compile(r"^# *-{10,} *\n((#.*\n)*?# *-{10,} *(\n|\Z))?", re.MULTILINE)
_HEADING = re.compile(r"#{3,}\s*(.*?)\s*#{3,}")
#: More words than a name and its value are a sentence that begins with a name.
_MOST_WORDS = 4


@dataclass
class _Paragraph:
    """Lines up to an empty one: what they explain, and the settings that stand among them."""

    heading: str
    prose: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)


def read_comments(file: Path, settings: Collection[str]) -> dict[str, dict[str, str]]:
    """Return setting -> `description` and `category` (the heading above), as far as the file has them; OSError.

    A paragraph explains the settings in it. One without prose is explained by the paragraphs between the last settings
    and its own.
    """
    descriptions: dict[str, dict[str, str]] = {}
    before: list[str] = []
    heading = ""
    for paragraph in _split(file.read_text(errors="replace"), settings):
        if paragraph.heading != heading:
            heading, before = paragraph.heading, []
        before += paragraph.prose
        if not paragraph.settings:
            continue
        text = _shorten(" ".join(paragraph.prose or before))
        for name in paragraph.settings:
            columns = {"description": text, "category": heading}
            descriptions.setdefault(name, {column: value for column, value in columns.items() if value})
        before = []
    return descriptions


def _split(text: str, settings: Collection[str]) -> Iterator[_Paragraph]:
    paragraph = _Paragraph("")
    for line in _BOX.sub("", text).splitlines():
        if (match := _HEADING.fullmatch(line.strip())) is not None:
            yield paragraph
            paragraph = _Paragraph(match[1].capitalize())
            continue
        words = line.strip().lstrip("#").split()
        if not line.strip():
            yield paragraph
            paragraph = _Paragraph(paragraph.heading)
        elif words and words[0] in settings and len(words) <= _MOST_WORDS:
            paragraph.settings.append(words[0])
        elif line.startswith("#") and words:
            paragraph.prose.append(" ".join(words))
    yield paragraph


def _shorten(text: str) -> str:
    """Return the first sentences of a text."""
    for end in re.finditer(r"[.:!?](?= )", text):
        if end.end() >= _ENOUGH:
            return text[: end.end()]
    return text
