"""Simulated studies whose truth is known, as the tests of the rules make them; each is made once."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest
from simulated_pairs import TRUTH, StudyMaker

from knobscope.commands.compare import Comparison, StudyTables, compare_studies, read_study
from knobscope.specs import StudySpecs
from knobscope.stages.detect import build_database, run_rules, write_findings


@pytest.fixture(scope="session")
def make_database(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Return a function that makes a study from the fields of StudyMaker, and gives its database.

    Equal fields give the same database again, so change copies only. With `judged` the rules are asked, too.
    """
    made: dict[str, Path] = {}
    specs: dict[Path, StudySpecs] = {}

    def make(*, judged: bool = False, **fields: Any) -> Path:
        key = repr((judged, sorted(fields.items())))
        if key not in made:
            made[key] = judge(make(**fields)) if judged else build(fields)
        return made[key]

    def build(fields: dict[str, Any]) -> Path:
        root = tmp_path_factory.mktemp("study")
        maker = StudyMaker(root, **{"truth": TRUTH, "repeats": 3, "uses": (), **fields})
        database = root / "study.duckdb"
        specs[database] = maker.specs()
        build_database(maker.files(specs[database]), specs[database], database)
        return database

    def judge(database: Path) -> Path:
        copy = Path(shutil.copy(database, tmp_path_factory.mktemp("judged")))
        with duckdb.connect(str(copy), read_only=True) as connection:
            findings = run_rules(connection, specs[database])
        write_findings(copy, findings)
        return copy

    return make


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that copies a database and executes SQL on the copy."""

    def change(database: Path, *statements: str) -> Path:
        copy = tmp_path / f"changed-{len(list(tmp_path.iterdir()))}" / "study.duckdb"
        copy.parent.mkdir()
        copy.write_bytes(database.read_bytes())
        with duckdb.connect(str(copy)) as connection:
            for statement in statements:
                connection.execute(statement)
        return copy

    return change


@pytest.fixture(scope="session")
def tables() -> Callable[[Path, Path], tuple[StudyTables, StudyTables]]:
    """Return a function that reads two databases as A and B, each once: no test changes one that it has read."""
    read = cache(read_study)
    return lambda a, b: (read("A", a), read("B", b))


@pytest.fixture
def compare(tables: Callable[..., tuple[StudyTables, StudyTables]]) -> Callable[..., Comparison]:
    """Return a function that compares two databases."""
    return lambda a, b, *matches: compare_studies(*tables(a, b), matches)
