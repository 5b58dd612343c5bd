import math
from datetime import datetime

import pytest
from simulated_specs import make_specs

from knobscope.text import formats as words
from knobscope.text.answers import describe_answer, names_cause


def plain(text: str) -> str:
    return text.replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (1234.5, "1,234"), (0.04567, "0.046"), (9.83, "9.8"), (3e-26, "3e-26"), (None, "–"), (math.nan, "–"),
     (math.inf, "∞"), (-0.5, "-0.5")],
)  # fmt: skip
def test_numbers(number: float | None, text: str) -> None:
    assert words.format_number(number) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.1234, "12 %"), (0.05, "5 %"), (0.0123, "1.2 %"), (0.0004, "< 0.1 %"), (0, "0 %"), (None, "–"),
     (-0.0001, "> -0.1 %"), (-0.0, "0 %"), (-0.0123, "-1.2 %")],
)  # fmt: skip
def test_shares(share: float | None, text: str) -> None:
    assert plain(words.format_share(share)) == text


@pytest.mark.parametrize(
    ("share", "limit", "text"),
    [(0.948, 0.95, "94.8 %"), (0.94996, 0.95, "94.996 %"), (0.95, 0.95, "95 %"), (0.797, 0.8, "79.7 %"),
     (0.504, 0.5, "50.4 %"), (0.6, 0.5, "60 %"), (1.0, 0.95, "100 %"), (None, 0.5, "–")],
)  # fmt: skip
def test_a_share_on_one_side_of_a_limit_does_not_look_like_it(share: float | None, limit: float, text: str) -> None:
    assert plain(words.format_share(share, limit)) == text


@pytest.mark.parametrize(
    ("size", "text"), [(512, "512 B"), (4096, "4 KiB"), (1 << 20, "1 MiB"), (1536, "1.5 KiB"), (5 << 40, "5 TiB")]
)
def test_sizes(size: int, text: str) -> None:
    assert plain(words.format_size(size)) == text


@pytest.mark.parametrize(
    ("micros", "text"), [(85, "85 µs"), (850, "850 µs"), (1234, "1.2 ms"), (20100, "20 ms"), (3.2e6, "3.2 s")]
)
def test_latencies(micros: float, text: str) -> None:
    assert plain(words.format_micros(micros)) == text


@pytest.mark.parametrize(("seconds", "text"), [(9e-6, "9 µs"), (1.44, "1.4 s"), (240, "4 min"), (4800, "1 h 20 min")])
def test_durations(seconds: float, text: str) -> None:
    assert plain(words.format_seconds(seconds)) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(9.8, "9.8x faster"), (1 / 9.8, "9.8x slower"), (1.12, "12 % faster"), (0.88, "12 % slower"), (1.0, "unchanged"),
     (1e9, "> 1,000,000x faster")],
)  # fmt: skip
def test_changes(ratio: float, text: str) -> None:
    assert plain(words.describe_change(math.log(ratio))) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(3.14, "3.1x"), (0.32, "0.32x"), (1.004, "1.00x"), (31.4, "31x"), (0.034, "0.034x")]
)
def test_folds(ratio: float, text: str) -> None:
    assert words.format_fold(math.log(ratio)) == text


@pytest.mark.parametrize(
    ("knob", "value", "text"),
    [("page_size", "65536", "64 KiB"), ("wal_autocheckpoint", "0", "0 (off)"), ("wal_autocheckpoint", "10", "10 pages"),
     ("synchronous", "off", "off"), ("unknown", "7", "7"), ("page_size", None, "–"), ("page_size", "<b>", "<b>")],
)  # fmt: skip
def test_values_have_their_unit(knob: str, value: str | None, text: str) -> None:
    assert plain(words.format_value(make_specs().dbms["sqlite"], knob, value)) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [("65536", "bytes", "64 KiB"), ("2048", "8kB", "16 MiB"), ("4", "kB", "4 KiB"), ("0", "8kB", "0 B"),
     ("1", "GB", "1 GiB"), ("200.0", "ms", "200 ms"), ("off", "ms", "off"),
     ("7", None, "7"), (None, "ms", "–"), ("1", "requests", "1 request"), ("1", "processes", "1 process"),
     ("1", "requests/s", "1 requests/s"), ("1", "ms", "1 ms"), ("10", "1/s", "10/s"),
     ("10", "requests", "10 requests")],
)  # fmt: skip
def test_values_have_their_unit_where_no_spec_is_known(value: str | None, unit: str | None, text: str) -> None:
    assert plain(words.format_unit(value, unit)) == text


def test_sentences() -> None:
    assert words.join_words(["a", "b", "c"]) == "a, b and c"
    assert words.join_words([]) == ""
    assert plain(words.plural(1, "mismatch", "mismatches")) == "1 mismatch"
    assert plain(words.plural(1200, "run")) == "1,200 runs"
    assert words.format_time(datetime(2026, 11, 21, 8, 34, 39)) == "2026-11-21 08:34"
    assert words.keep_units("12 % faster than 4 pages") == "12\u00a0% faster than 4 pages"


@pytest.mark.parametrize(
    ("confirmed", "text", "is_named"),
    [
        ("yes", "confirmed", True),
        ("found", "found by an experiment", True),
        ("no", "refuted by an experiment", False),
        ("not_tested", "not confirmed", False),
        (None, "not confirmed", False),
    ],
)
def test_answers_of_experiments(confirmed: str | None, text: str, is_named: bool) -> None:
    assert (describe_answer(confirmed), names_cause(confirmed)) == (text, is_named)


@pytest.mark.parametrize(
    ("before", "after", "step", "verb"),
    [("1", "100", 1, "Raising"), ("100", "1", -1, "Lowering"), ("1", "100", -1, "Changing"), ("a", "b", 1, "Changing")],
)
def test_a_knob_is_raised_where_its_number_rises(before: str, after: str, step: int, verb: str) -> None:
    """Values may be listed in an order of their own: 0, 100, 1 of sync_binlog."""
    assert words.describe_setting(None, "k", before, after, step) == f"{verb} k from {before} to {after}"
