"""Starts a DBMS from its spec on an empty data directory and asks for its catalogue of settings."""

import json
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from knobscope.errors import UserError
from knobscope.generators import GeneratorError, read_back
from knobscope.prepare import load_session
from knobscope.processes import supervise
from knobscope.servers import Instance, Server, ServerFailedError, initialise_data, open_instance, read_version
from knobscope.specs import Dbms, Workload

__all__ = ["Answer", "ask_catalogue"]

#: The client that asks wants to know a workload, though it does not run it.
_NO_LOAD = Workload.model_validate({"name": "nothing", "generator": "ycsb", "class": "read", "records": 1})
_VERSION = "version"


@dataclass(frozen=True)
class Answer:
    """What a DBMS says about its settings: its version, and setting -> column of the catalogue -> value."""

    version: str
    rows: dict[str, dict[str, Any]]


def ask_catalogue(dbms: Dbms) -> Answer:
    """Start the DBMS on an empty data directory, ask `introspect.query`, and leave nothing behind.

    UserError: the spec has no `introspect`, a program is missing, the server does not start, or the answer is not rows
    of (name, JSON object).
    """
    if dbms.introspect is None:
        raise UserError(f"specs/dbms/{dbms.name}.yaml has no `introspect`: nobody has said how to ask it for its knobs")
    with tempfile.TemporaryDirectory(prefix="knobscope-introspect-", dir="/var/tmp") as directory:
        place = Path(directory)
        place.chmod(0o711)  # the server's user has to pass
        data, log = place / "data", place / "server.log"
        data.mkdir(mode=0o700)
        try:
            with open_instance(dbms, data) as instance:
                if instance.user is not None:
                    shutil.chown(data, instance.user, instance.user)
                return _start_and_ask(instance, dbms.introspect.query, log)
        except (ServerFailedError, GeneratorError) as error:
            raise UserError(f"{dbms.name} did not answer: {error}\n{error.log_tail}") from error


def _start_and_ask(instance: Instance, query: str, log: Path) -> Answer:
    life = instance.dbms.lifecycle
    if life is None:
        return _ask(instance, query)
    initialise_data(instance, {}, log)
    with Server(instance, life, {}, log) as server:
        server.wait_ready()
        server.set_up()
        return _ask(instance, query)


def _ask(instance: Instance, query: str) -> Answer:
    session = load_session(instance, _NO_LOAD, [], [], threads=1)
    each = {_VERSION: instance.dbms.version_sql} if instance.dbms.version_sql else {}
    answered = dict(read_back(replace(session, readback={"query": query, "each": each}), supervise).effective)
    version = answered.pop(_VERSION) if each else read_version(instance)
    return Answer(version or "", {name: _parse(name, text) for name, text in answered.items()})


def _parse(name: str, text: str) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except ValueError as error:
        raise UserError(f"`introspect.query` answers {text!r} for {name}; expected a JSON object") from error
    if not isinstance(row, dict):
        raise UserError(f"`introspect.query` answers {text!r} for {name}; expected a JSON object")
    return row
