"""What DBMSs say about their settings, in the forms in which they say it."""

import pytest

from knobscope.servers import ANSWER_PARSERS


def test_pairs_are_lines_in_turn_and_values_may_be_empty() -> None:
    assert ANSWER_PARSERS["pairs"]("save\n\nappendfsync\nalways\n") == {"save": "", "appendfsync": "always"}


@pytest.mark.parametrize(
    "text",
    ["flush = 1\ncache size\n", "flush\t1\n", "flush: 1", "| flush | 1 |\n+-------+---+\n", "  flush   1   \n# note\n"],
)
def test_a_table_has_name_and_value_on_a_line(text: str) -> None:
    assert ANSWER_PARSERS["table"](text)["flush"] == "1"


def test_json_is_flattened_and_words_before_it_are_skipped() -> None:
    text = 'connecting ...\n{"net": {"port": 1, "on": true}, "name": "x"}\n'
    assert ANSWER_PARSERS["json"](text) == {"net.port": "1", "net.on": "true", "name": "x"}
    assert ANSWER_PARSERS["json"]('[{"name": "a", "value": 2}]') == {"a": "2"}
    line = '[INFO] [2026-11-30 01:02:03] [3] effective: {"wal": {"sync": null, "every": 1.5}, "tags": ["a"]}\n'
    assert ANSWER_PARSERS["json"](line) == {"wal.sync": "null", "wal.every": "1.5", "tags": '["a"]'}
    with pytest.raises(ValueError, match="Expecting"):
        ANSWER_PARSERS["json"]("no bracket")


def test_configurations_of_wiredtiger_are_nested() -> None:
    text = 'file:test.wt\nallocation_size=4KB,assert=(commit=none,write=off),columns=,log=(enabled=true),source="x:y"\n'
    assert ANSWER_PARSERS["wiredtiger"](text) == {
        "allocation_size": "4KB",
        "assert.commit": "none",
        "assert.write": "off",
        "columns": "",
        "log.enabled": "true",
        "source": "x:y",
    }


def test_the_first_value_of_an_ini_file_counts() -> None:
    text = '[CFOptions "default"]\n  write_buffer_size=1\n[CFOptions "other"]\n  write_buffer_size=2\n#x=3\n'
    assert ANSWER_PARSERS["ini"](text) == {"write_buffer_size": "1"}
