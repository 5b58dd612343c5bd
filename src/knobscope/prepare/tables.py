"""Which table lies in which file: asked once, when data has been loaded, and kept with the snapshot."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from knobscope.generators import Session, read_back
from knobscope.processes import supervise
from knobscope.specs import Dbms
from knobscope.tables import write_json

__all__ = ["keep_tables", "read_tables", "table_question"]

_NAME = "tables.json"


def table_question(dbms: Dbms) -> str | None:
    """Return the statement that asks for (file, table), None where patterns tell, or nothing does."""
    return dbms.files.tables.query if dbms.files.tables else None


def keep_tables(dbms: Dbms, session: Session, directory: Path) -> None:
    """Ask on a connection like that of a session, and keep the answer in a directory, when there is a question."""
    if (question := table_question(dbms)) is not None:
        asked = replace(session, init=[], readback={"query": question})
        write_json(directory / _NAME, read_back(asked, supervise).effective)


def read_tables(directory: Path) -> Mapping[str, str]:
    """Return what was kept: file below the data directory -> table."""
    kept = directory / _NAME
    content: dict[str, str] = json.loads(kept.read_text()) if kept.exists() else {}
    return content
