"""Real databases for the real client."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from generator_databases import COLUMNS, POSTGRES, RECORDS, Postgres, SessionFactory, sqlite_session

from knobscope.generators import load_records


@pytest.fixture(scope="session")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with all records."""
    home = tmp_path_factory.mktemp("loaded")
    session = sqlite_session(home / "data.sqlite", home / "client", threads=1)
    schema = [f"create table usertable (YCSB_KEY text primary key, {COLUMNS}) without rowid"]
    assert load_records(session, schema) == RECORDS
    return home / "data.sqlite"


@pytest.fixture
def database(loaded: Path, tmp_path: Path) -> Path:
    """A copy of the loaded SQLite file."""
    return Path(shutil.copy(loaded, tmp_path / "data.sqlite"))


@pytest.fixture
def on_sqlite(database: Path, tmp_path: Path) -> SessionFactory:
    """Makes sessions on the copy."""
    return lambda **changes: sqlite_session(database, tmp_path / "client", **changes)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A running server with a loaded table."""
    if not (POSTGRES / "postgres").exists():
        pytest.skip("no PostgreSQL is installed")
    user = "postgres" if os.geteuid() == 0 else None  # a server refuses to run as root
    home = Path(tempfile.mkdtemp(prefix="knobscope-test-", dir="/var/tmp"))
    (home / "s").mkdir()
    for path in (home, home / "s") if user else ():
        shutil.chown(path, user, user)
    server = Postgres(home, user)
    try:
        server.start()
        schema = [f"create table usertable (YCSB_KEY varchar(64) primary key, {COLUMNS})"]
        assert load_records(server.session(home / "client"), schema) == RECORDS
        yield server
    finally:
        server.stop()
        shutil.rmtree(home)
