"""Which table lies in which file: asked once, when data has been loaded, and kept with the snapshot."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from knobscope.durable_files import read_sealed, write_sealed
from knobscope.generators import Session, read_back
from knobscope.servers import Instance
from knobscope.specs import Dbms

_NAME = "tables.json"


def table_question(dbms: Dbms) -> str | None:
    """Return the statement that asks for (file, table), None where patterns tell, or nothing does."""
    return dbms.files.tables.query if dbms.files.tables else None


def keep_tables(instance: Instance, session: Session, directory: Path) -> None:
    """Ask on a connection like that of a session, and keep the answer in a directory, when there is a question."""
    if (question := table_question(instance.dbms)) is not None:
        table_session = replace(session, init=[], readback={"query": question})
        write_sealed(directory / _NAME, read_back(table_session, instance.start).effective)


def read_tables(directory: Path) -> Mapping[str, str]:
    """Return what was kept: file below the data directory -> table."""
    path = directory / _NAME
    return read_sealed(path) if path.exists() else {}
