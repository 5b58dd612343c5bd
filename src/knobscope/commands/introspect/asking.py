"""Starts a DBMS from its spec on an empty data directory and asks for its catalogue of settings."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from knobscope.errors import UserError
from knobscope.generators import GeneratorError, read_back
from knobscope.patterns import find_first, read_groups
from knobscope.processes import open_temporary
from knobscope.servers import (
    Instance,
    Server,
    ServerFailedError,
    initialise_data,
    make_data_directory,
    open_instance,
    read_version,
)
from knobscope.specs import CATALOGUE_KEYS, Dbms, Introspection, Trial, Workload, suggest
from knobscope.stages.prepare import load_session

#: The client that asks wants to know a workload, though it does not run it.
_NO_LOAD = Workload.model_validate({"name": "nothing", "generator": "ycsb", "class": "read", "records": 1})
_VERSION = "version"
_ALIVE = ""  # no setting's name


@dataclass(frozen=True)
class Answer:
    """What a DBMS says about its settings: its version, and setting -> column of the catalogue -> value."""

    version: str
    rows: dict[str, dict[str, Any]]


def ask_catalogue(dbms: Dbms) -> Answer:
    """Start the DBMS on an empty data directory, ask as `introspect` says, and leave nothing behind.

    UserError: the spec does not say how to ask, a program is missing, the server does not start, or the answer to its
    `query` is not rows of (name, JSON object).
    """
    if dbms.introspect is None:
        raise UserError(f"specs/dbms/{dbms.name}.yaml has no `introspect`, which says how {dbms.name} lists its knobs")
    if dbms.connection is None or (dbms.introspect.query or dbms.readback.query) is None:
        raise UserError(
            f"specs/dbms/{dbms.name}.yaml has no query that lists settings (`introspect.query` or `readback.query`, "
            "with a `connection`); list them in a file, and name it with --settings"
        )
    with open_temporary("knobscope-catalogue-", Path("/var/tmp")) as folder:  # noqa: S108 - what is private is made in it
        folder.chmod(0o711)  # the server's user has to pass
        data, log = folder / "data", folder / "server.log"
        make_data_directory(data)
        try:
            with open_instance(dbms, data) as instance:
                return _start_and_ask(instance, dbms.introspect, log)
        except (ServerFailedError, GeneratorError) as error:
            raise UserError(f"{dbms.name} did not answer: {error}\n{error.log_tail}") from error


def _start_and_ask(instance: Instance, introspection: Introspection, log: Path) -> Answer:
    life = instance.dbms.lifecycle
    if life is None:
        return _ask(instance, introspection)
    initialise_data(instance, {}, log)
    with Server(instance, life, {}, log) as server:
        server.wait_ready()
        server.set_up()
        return _ask(instance, introspection)


def _ask(instance: Instance, introspection: Introspection) -> Answer:
    session = load_session(instance, _NO_LOAD, [], [], threads=1)
    each = {_VERSION: instance.dbms.version_sql} if instance.dbms.version_sql else {}
    query = introspection.query or instance.dbms.readback.query
    listed = dict(read_back(replace(session, readback={"query": query, "each": each}), instance.start).effective)
    version = listed.pop(_VERSION) if each else read_version(instance)
    rows = {name: _parse(name, text) if introspection.query else {"default": text} for name, text in listed.items()}
    for trial in introspection.trials:
        attempts = {
            name: [statement.format(knob=name) for statement in trial.statements]
            for name in rows
            if introspection.why_left_out(name) is None
        }
        # The list is asked for last, which shows that the server survived the attempts: a refusal that comes from a
        # broken connection says nothing about a knob.
        questions = {"attempts": attempts, "each": {_ALIVE: query}}
        answers = dict(read_back(replace(session, readback=questions), instance.start).effective)
        del answers[_ALIVE]
        for name, answer in answers.items():
            rows[name] = {**learn(trial, answer), **rows[name]}
    return Answer(version or "", rows)


def state_own_defaults(dbms: Dbms, rows: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the settings with the DBMS's own defaults: in force is what the spec chose instead, or the machine."""
    stated = {name: dict(row) for name, row in rows.items()}
    for name, knob in dbms.knobs.items():
        if name in rows and knob.built_in is not None:
            own = knob.own_default
            stated[name]["default"] = dbms.write(knob.default if own is None else own)
            if own is None:
                stated[name]["built_in"] = knob.built_in
    return stated


def learn(trial: Trial, answer: str) -> dict[str, str]:
    """Return the columns of the catalogue that an answer to a trial tells: of the first pattern found in it."""
    first = find_first(tuple(trial.says), answer)
    if first is None:
        return {}
    pattern, columns = list(trial.says.items())[first]
    return {**columns, **read_groups(pattern, answer)}


def read_settings(path: Path) -> Answer:
    """Return the settings that a file lists instead of the DBMS: a line with `version`, then one for each setting.

    UserError: a line is no JSON object, has no `version` or `name`, or a key that no catalogue has; a name comes twice.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {error}; expected lines of JSON") from error
    version, rows = "", {}
    for number, line in enumerate(lines, start=1):
        key = "version" if number == 1 else "name"
        try:
            row = json.loads(line)
            value = str(row.pop(key))
        except (ValueError, AttributeError, TypeError, KeyError) as error:
            raise UserError(f"{path}:{number}: found {line[:60]!r}; expected a JSON object with `{key}`") from error
        if number == 1:
            version = value
            continue
        if value in rows:
            raise UserError(f"{path}:{number}: found {value!r} a second time; expected a line for each setting")
        if unknown := [column for column in row if column not in CATALOGUE_KEYS]:
            expected = suggest(unknown[0], list(CATALOGUE_KEYS))
            raise UserError(f"{path}:{number}: {unknown[0]}: found an unknown key; expected {expected}")
        rows[value] = row
    if not rows:
        raise UserError(
            f"{path}: found no setting; expected a JSON object with `name` a line, below one with `version`"
        )
    return Answer(version, rows)


def _parse(name: str, text: str) -> dict[str, Any]:
    try:
        row = json.loads(text)
    except ValueError as error:
        raise UserError(f"`introspect.query` answers {text!r} for {name}; expected a JSON object") from error
    if not isinstance(row, dict):
        raise UserError(f"`introspect.query` answers {text!r} for {name}; expected a JSON object")
    return {column: value for column, value in row.items() if value is not None}  # null: not told
