"""Keeps calques out of what people read: sentences, messages, docstrings, comments, descriptions and docs."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "rules", "probes", "specs", "docs")
SUFFIXES = {".py", ".md", ".sql", ".yaml", ".j2", ".smk", ".c", ".h"}
CALQUES = {
    r"beside": "next to, together with, in addition to, compared with",
    r"at the begin": "at the start",
    r"in the mean(?! ?time)": "on average",
    r"borne out|bears? \w+ (cause )?out|bears? out": "confirmed, confirms",
    r"else than": "other than",
    r"put (that |it )?right": "correct",
    r"hand(s|ed|ing)? (on|over)": "pass on, pass, export",
    r"lets? (\w+ )?expect": "suggests",
    r"(is|was|are|were) not to be had": "not available",
    r"(to|can|cannot|could|not) be had": "available, can be gained",
    r"withdrawn|withdrew": "refuted, did not reproduce",
    r"\w+ is nobody's doing|is \w+'s doing|are \w+'s doing": "did not cause",
    r"stands? out of the noise": "stands out from the noise",
    r"(no|which|whose|what) \w+ is told": "is reported",
}
ANY_CALQUE = re.compile(rf"\b({'|'.join(CALQUES)})\b", re.IGNORECASE)
#: Names in code and in databases, which are no prose.
NAMES = re.compile(
    r"`[^`]*`|\{\{.*?\}\}|\{%.*?%\}|\{[^{}]*\}|<code>.*?</code>|\bbeside: (?=[\[{])|^\s*beside:|'beside'|\"beside\""
)
SQL = re.compile(r"\b(SELECT|FROM|WHERE|JOIN|GROUP BY|ORDER BY|CASE WHEN)\b")


def read_prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield numbered lines of a file; of code, comments and sentences only."""
    text = path.read_text()
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            is_sentence = token.type == tokenize.STRING and token.string.count(" ") > 1 and not SQL.search(token.string)
            if token.type == tokenize.COMMENT or is_sentence:
                yield from enumerate(token.string.splitlines(), token.start[0])
    elif path.suffix == ".sql":
        yield from ((number, line.partition("--")[2]) for number, line in enumerate(text.splitlines(), 1))
    else:
        yield from ((number, line) for number, line in enumerate(text.splitlines(), 1) if not SQL.search(line))


def find_calques(path: Path) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {match[0]!r}: write {better}"
        for number, line in read_prose(path)
        if ANY_CALQUE.search(prose := NAMES.sub("", line))
        for calque, better in CALQUES.items()
        if (match := re.search(rf"\b({calque})\b", prose, re.IGNORECASE))
    ]


FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SUFFIXES]


def test_no_text_has_a_calque() -> None:
    assert len(FILES) > 500
    found = [line for path in FILES for line in find_calques(path)]
    assert found == [], "\n".join(found)


def test_decimal_numbers_of_pages_begin_with_a_digit() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    numbers = [
        f"{page.relative_to(ROOT)}: {match[0].strip()}"
        for page in pages
        for match in re.finditer(
            r"(?<=[ (|=<>≥≤])[-−]?\.\d+", re.sub(r"```.*?```|`[^`]*`", "", page.read_text(), flags=re.DOTALL)
        )
    ]
    assert numbers == []


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("# A file beside the database.", 1),
        ('beside = row["beside"]', 0),
        ('QUERY = "SELECT beside FROM effects WHERE beside IS NULL"', 0),
        ("# Column `beside` names the other knobs.", 0),
        ("# Requests were handed over, 3 in the mean.", 2),
        ("# In the meantime the server runs.", 0),
    ],
)
def test_only_prose_is_searched(line: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("test_language.ROOT", tmp_path)
    (tmp_path / "module.py").write_text(f"{line}\n")
    assert len(find_calques(tmp_path / "module.py")) == count


@pytest.mark.parametrize("folder", ["src", "probes"])
def test_no_text_is_cut_at_the_end_of_a_line(folder: str) -> None:
    """A text on a line of its own, outside of brackets, is a statement that does nothing: the sentence ended early."""
    lost = []
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            documented = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            bodies = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
            for body in filter(lambda body: isinstance(body, list), bodies):
                lost += [
                    f"{path}:{statement.lineno}"
                    for statement in (body[1:] if documented else body)
                    if isinstance(statement, ast.Expr)
                    and isinstance(statement.value, ast.Constant | ast.JoinedStr)
                    and getattr(statement.value, "value", "") is not ...
                ]
    assert lost == []
