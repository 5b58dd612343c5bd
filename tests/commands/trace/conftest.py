"""Traces as files, and what `knobscope trace` says about them."""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from json_documents import read_document

from knobscope.cli import main

#: describe(file, "--unit", 4096, ...) -> the profile that the command writes as JSON
Describe = Callable[..., dict[str, Any]]
WriteCsv = Callable[[Sequence[Mapping[str, Any]]], Path]


@pytest.fixture
def describe(tmp_path: Path) -> Describe:
    def run(trace: Path, *options: str | int) -> dict[str, Any]:
        out = tmp_path / "profile.json"
        assert main(["trace", str(trace), "--json", str(out), *(str(option) for option in options)]) == 0
        profile: dict[str, Any] = read_document("trace", out.read_text())
        return profile

    return run


@pytest.fixture
def write_csv(tmp_path: Path) -> WriteCsv:
    """Write requests as CSV; what a request does not say is a write of 8 sectors that took 1 us."""
    usual = {"len_sectors": 8, "op": "W", "flush": 0, "file": "", "lat_ns": 1000}

    def write(requests: Sequence[Mapping[str, Any]]) -> Path:
        rows = [{"ts_ns": 1000 * number, **usual, **request} for number, request in enumerate(requests)]
        path = tmp_path / "trace.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
            writer.writeheader()
            writer.writerows(rows)
        return path

    return write


@pytest.fixture
def write_text(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "trace.txt"
        path.write_text(text)
        return path

    return write
