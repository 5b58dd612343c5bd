"""What the comments of a configuration file say of its settings."""

from pathlib import Path

import pytest

from knobscope.commands.introspect.comments import read_comments

FILE = """\
# Configuration file example.
timeout 0

############################# APPEND ONLY MODE #############################

# By default the dataset is dumped to disk.
#
# The Append Only File is an alternative.

appendonly no

# The name of the file.
appendfilename "append.aof"

# Three ways to call fsync().

# appendfsync always
appendfsync everysec

############################# ADVANCED CONFIG ##############################
hz 10
# Hashes are encoded in another way when they are small. These settings say
# what counts as small.
# hash-entries 512
hash-value 64 # a comment
# hash-value is the length of the longest value that counts as small
rest yes
"""
SETTINGS = ["timeout", "appendonly", "appendfilename", "appendfsync", "hz", "hash-entries", "hash-value"]


@pytest.fixture
def told(tmp_path: Path) -> dict[str, dict[str, str]]:
    file = tmp_path / "a.conf"
    file.write_text(FILE)
    return read_comments(file, SETTINGS)


def test_a_paragraph_describes_the_settings_in_it(told: dict[str, dict[str, str]]) -> None:
    assert told["timeout"] == {"description": "Configuration file example."}
    assert told["appendfilename"] == {"description": "The name of the file.", "category": "Append only mode"}
    assert told["hash-entries"]["description"].startswith("Hashes are encoded in another way")


def test_settings_without_words_of_their_own_have_those_above_them(told: dict[str, dict[str, str]]) -> None:
    whole = "By default the dataset is dumped to disk. The Append Only File is an alternative."
    assert told["appendonly"] == {"description": whole, "category": "Append only mode"}
    assert told["appendfsync"] == {"description": "Three ways to call fsync().", "category": "Append only mode"}


def test_only_settings_that_were_asked_for_are_described(told: dict[str, dict[str, str]]) -> None:
    assert set(told) <= set(SETTINGS)


def test_a_sentence_that_begins_with_a_name_is_no_setting(tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    file.write_text("# hz is how often background tasks run.\n# It is approximate.\nhz 10\n")
    assert read_comments(file, ["hz"]) == {
        "hz": {"description": "hz is how often background tasks run. It is approximate."}
    }


def test_a_warning_between_rows_of_dashes_explains_nothing(tmp_path: Path) -> None:
    row = f"# {'-' * 40}\n"
    file = tmp_path / "a.conf"
    file.write_text(f"{row}# WARNING: this may lose data.\n{row}#\n# How often tasks run.\nhz 10\n")
    assert read_comments(file, ["hz"]) == {"hz": {"description": "How often tasks run."}}
    file.write_text(f"{row}# How often tasks run.\nhz 10\n\n{row}# How long to wait.\ntimeout 0\n")
    told = read_comments(file, ["hz", "timeout"])
    assert [one["description"] for one in told.values()] == ["How often tasks run.", "How long to wait."]


def test_long_comments_end_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "a.conf"
    file.write_text("# " + "One two three four five six. " * 30 + "\nhz 10\n")
    text = read_comments(file, ["hz"])["hz"]["description"]
    assert 200 <= len(text) < 260
    assert text.endswith("six.")


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_comments(tmp_path / "missing.conf", ["hz"])
