"""Files of a study folder, which anybody can write with valid checksums: `detect` takes them or names them."""

import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from canaries import SECRET, STUDY, Open

from knobscope.durable_files import read_sealed, write_sealed

Change = Callable[[Path], None]


def parquet(query: str) -> Change:
    return lambda path: duckdb.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)") and None


def sealed(**changes: object) -> Change:
    return lambda path: write_sealed(path, {**read_sealed(path), **changes})


CHANGES: dict[str, tuple[str, Change, str]] = {
    "other column": ("runs/runs.parquet", parquet("SELECT 1 AS strange"), "table `runs`"),
    "other type": ("runs/runs.parquet", parquet("SELECT 'x' AS throughput_ops"), "table `runs`"),
    "many rows": ("runs/runs.parquet", parquet("SELECT true AS x FROM range(50_000_001)"), "than 50,000,000"),
    "no parquet": ("runs/runs.parquet", lambda path: path.write_text(SECRET[:4]) and None, "is damaged"),
    "fit": ("*/*/*/fit/*.json", sealed(r2_splits="x"), "expected a file that `knobscope select` wrote"),
    "large fit": ("*/*/*/fit/*.json", lambda path: path.open("r+b").truncate((1 << 28) + 1) and None, "256 MiB"),
    "device": ("*.json", sealed(curves=[1]), "'curves' is no list of rows"),
}  # fmt: skip


@pytest.mark.slow
def test_detect_takes_or_names_each_file(open_watched: Open, honest: Path, run_folder: Path) -> None:
    commands, sentences = [], []
    for number, (pattern, change, sentence) in enumerate(CHANGES.values()):
        folder = run_folder / str(number)
        shutil.copytree(honest.parent, folder)
        change(sorted(path for path in folder.rglob(pattern))[0])
        commands.append(detect(folder))
        sentences.append(sentence)
    for answer, sentence in zip(open_watched(*commands), sentences, strict=True):
        assert answer.code == 2, answer.text
        assert sentence in answer.text


def detect(folder: Path) -> list[object]:
    return [
        "detect", "--study", STUDY, "--runs", folder / "runs", "--plans", *folder.rglob("plan/*.parquet"),
        "--fits", *folder.rglob("fit/*.json"), "--devices", *folder.glob("*.json"), *folder.glob("devices/*.json"),
        "--out", folder / "new.duckdb",
    ]  # fmt: skip
