"""YAML with positions: scalars mean what they look like, and nothing that cannot be read ends in a traceback."""

import os
from pathlib import Path

import pytest

from knobscope.specs import SpecErrors
from knobscope.specs.reading.source import load_document


def write(folder: Path, content: bytes) -> Path:
    (folder / "x.yaml").write_bytes(content)
    return folder / "x.yaml"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(word, word) for word in ("on", "off", "yes", "no", "y", "True", "FALSE", "1:30", "2024-01-01", "1_000")],
        *[(word, word) for word in (".inf", ".nan", "0x10", "<<", "8kB", "=", "None")],
        ("true", True),
        ("false", False),
        ("~", None),
        ("null", None),
        ("010", 10),
        ("-5", -5),
        ("1e3", 1000.0),
        ("1E-3", 0.001),
        (".5", 0.5),
        ("2.", 2.0),
        ("'5'", "5"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(tmp_path: Path, text: str, value: object) -> None:
    data = load_document(write(tmp_path, f"key: {text}\n".encode())).data
    assert data == {"key": value}
    assert type(data["key"]) is type(value)


@pytest.mark.parametrize(
    ("content", "line", "found"),
    [
        (b"a: 1\n\xff\xfe", 1, "bytes that are not UTF-8"),
        (b"a: 1\nb: \x00\n", 2, "the character U+0000"),
        (b"a: 1\nb: 'x\n", 3, "found unexpected end of stream"),
        (b"a: 1\n\tb: 2\n", 2, "found character '\\t' that cannot start any token"),
        (b"a: 1\n---\nb: 2\n", 2, "but found another document"),
        (b"a: !!python/object/apply:os.system [ls]\n", 1, "the tag !!python/object/apply:os.system"),
        (b"a: 1\nb: !!int word\n", 2, "the tag !!int"),
        (b"a: 1\n!!seq b: 2\n", 2, "the tag !!seq"),
        (b"!!map a: 1\n", 1, "the tag !!map"),
        (b"!!timestamp 2024-01-01: 1\n", 1, "the tag !!timestamp"),
        (b"a:\n  - !x 1\n", 2, "the tag !x"),
        (b"a:\n  - 1\n  - 1e999\n", 3, "the number 1e999"),
        (b"a:\n  - 1\n  - 1e-300\n", 3, "the number 1e-300"),
        (b"a: " + b"9" * 5000, 1, "the number 9999"),
        (b'a: 1\nb: ["x", "y\\0"]\n', 2, "text with the character U+0000"),
        (b'a: 1\n"b\\ud800": 1\n', 2, "a key that is text with the character U+D800"),
        (b'a: "\\UFFFFFFFF"\n', 1, "a document that cannot be read"),
        (b"a: " + b"x" * 5_000_000, 1, "more than 4 MiB"),
        (b"a: " + b"[" * 1500, 1, "a document that cannot be read"),
        (b"a: &x [*x]\n", 1, "the alias *x (specs have no aliases)"),
        (b"a:\n  b: 1\n  b: 2\n  b: 3\n", 3, "the key a second time"),
    ],
)
def test_unreadable_files_are_explained(tmp_path: Path, content: bytes, line: int, found: str) -> None:
    with pytest.raises(SpecErrors) as caught:
        load_document(write(tmp_path, content))
    first = caught.value.problems[0]
    assert first.line == line
    assert found in first.found
    assert "\n" not in str(first)


def test_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(SpecErrors, match=r"x.yaml:1: file: found no such file or directory; expected a readable YAML"):
        load_document(tmp_path / "x.yaml")


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    """A FIFO would make the reader wait for a writer, and /dev/zero never ends."""
    os.mkfifo(tmp_path / "fifo.yaml")
    (tmp_path / "zero.yaml").symlink_to("/dev/zero")
    (tmp_path / "folder.yaml").mkdir()
    for name in ("fifo", "zero", "folder"):
        with pytest.raises(SpecErrors, match=f"{name}.yaml:1: file: found .*(no regular file|is a directory)"):
            load_document(tmp_path / f"{name}.yaml")


def test_lines_of_keys_and_items(tmp_path: Path) -> None:
    document = load_document(write(tmp_path, b"# comment\na:\n  - 1\n  - b: {0: x,\n      1: y}\n"))
    assert document.lines == {(): 1, ("a",): 2, ("a", 0): 3, ("a", 1): 4, ("a", 1, "b"): 4, ("a", 1, "b", 0): 4} | {
        ("a", 1, "b", 1): 5
    }
    assert document.problem(("a", 1, "c"), "x", "y").line == 4


def test_a_text_that_was_read_is_not_read_again_and_its_problems_name_each_file(tmp_path: Path) -> None:
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    for file in (first, second):
        file.write_text("a: 1\nb: [x, y]\n")
    assert load_document(first).data is load_document(second).data
    assert load_document(second).path == second
    for file in (first, second):
        file.write_text("a: 1\na: 2\n")
        with pytest.raises(SpecErrors, match=rf"{file.name}:2: a: found the key a second time"):
            load_document(file)
