"""What `knobscope trace` says of locality: traces whose hot set is known."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

Capture = pytest.CaptureFixture[str]


def test_a_known_hot_set(describe: Any, write_csv: Any, capsys: Capture) -> None:
    """Nine of ten reads go to 256 of 4,096 blocks of one file: a cache of 1 MiB saves about that many."""
    rng = np.random.default_rng(5)
    blocks = np.where(rng.random(8000) < 0.9, rng.integers(1000, 1256, 8000), rng.integers(0, 4096, 8000))
    requests = [{"lba": int(block) * 8, "op": "R", "file": "a.db"} for block in blocks]
    locality = describe(write_csv(requests))["locality"]
    assert (locality["block_bytes"], locality["rate"]) == (4096, 1)
    saved = {point["cache_bytes"]: 1 - point["miss_share"] for point in locality["curve"]}
    assert saved[512 << 10] < 0.65
    assert saved[2 << 20] > 0.75
    (file,) = locality["files"]
    assert (file["file"], file["range_bytes"]) == ("a.db", 128 << 10)
    assert file["hot_share"] == pytest.approx(256 / 4096, abs=0.02)
    shown = capsys.readouterr().out.replace("\u00a0", " ")
    assert "An LRU cache of 2 MiB in addition to those in place would save " in shown
    assert "were read for the first time, which no cache saves." in shown
    assert "a.db" in shown.rsplit("80 % of requests go to", 1)[1]


def test_without_a_second_read_nothing_is_saved(describe: Any, write_csv: Any, capsys: Capture) -> None:
    locality = describe(write_csv([{"lba": 8 * block, "op": "R"} for block in range(100)]))["locality"]
    assert (locality["first_share"], locality["useful_cache_bytes"]) == (1, None)
    shown = capsys.readouterr().out.replace("\u00a0", " ")
    assert "All of the 400 KiB read were read for the first time: a larger cache would save nothing." in shown


def test_no_cache_is_useful_that_saves_next_to_nothing(describe: Any, write_csv: Any, capsys: Capture) -> None:
    """Of 1,000 reads two are of what was read before."""
    blocks = [*range(998), 0, 1]
    locality = describe(write_csv([{"lba": 8 * block, "op": "R"} for block in blocks]))["locality"]
    assert (locality["first_share"], locality["useful_cache_bytes"]) == (0.998, None)
    shown = capsys.readouterr().out.replace("\u00a0", " ")
    said = "99.8 % of the 3.91 MiB read were read for the first time: a larger cache would save next to nothing."
    assert said in shown


def test_few_requests_have_no_table_of_files(describe: Any, write_csv: Any, capsys: Capture) -> None:
    describe(write_csv([{"lba": 8, "op": "R", "file": "a.db"}]))
    assert "80 % of requests go to" not in capsys.readouterr().out.replace("\u00a0", " ")


def test_what_was_written_is_in_the_cache(describe: Any, write_csv: Any) -> None:
    requests = [{"lba": 8 * block, "op": op} for op in "WR" for block in range(100)]
    locality = describe(write_csv(requests))["locality"]
    assert (locality["first_share"], locality["useful_cache_bytes"]) == (0, 128 * 4096)


def test_a_trace_without_reads_has_no_locality(describe: Any, write_csv: Callable[..., Any]) -> None:
    assert describe(write_csv([{"lba": 8 * block} for block in range(100)]))["locality"] is None
