"""What tests of several stages share: the shipped specs, and places that servers can reach."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from knobscope.specs import Dbms, Workload
from knobscope.specs.library import read_spec

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def sqlite() -> Dbms:
    """The shipped SQLite spec."""
    return read_spec(ROOT / "specs/dbms/sqlite.yaml", Dbms, None)[1]


@pytest.fixture(scope="session")
def postgresql() -> Dbms:
    """The shipped PostgreSQL spec."""
    return read_spec(ROOT / "specs/dbms/postgresql.yaml", Dbms, None)[1]


@pytest.fixture(scope="session")
def short_workload() -> Workload:
    """YCSB A on a thousand records, measured for half a second."""
    full = read_spec(ROOT / "specs/workloads/ycsb-a.yaml", Workload, None)[1]
    return full.model_copy(update={"records": 1000, "threads": 1, "warmup_s": 0.2, "measure_s": 0.5})


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory on a disk that every user can reach; a test's own temporary directory is closed to others."""
    directory = Path(tempfile.mkdtemp(prefix="knobscope-test-", dir="/var/tmp"))
    directory.chmod(0o711)
    yield directory
    shutil.rmtree(directory)
