"""Asks a running server, on a connection that only reads, for its settings and for which table lies in which file."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from knobscope.errors import UserError
from knobscope.generators import GeneratorError, Session, read_back
from knobscope.processes import find_service_user, open_temporary, supervise
from knobscope.servers.readback import readback_request
from knobscope.specs import Dbms, clients_directory

#: Where a password may be that is not in the URL, which everybody sees who lists processes.
PASSWORD = "KNOBSCOPE_PASSWORD"  # noqa: S105 - a variable's name
#: Scheme of a URL -> the same for JDBC, and the statement after which a session can change nothing.
_JDBC = {
    "postgresql": ("jdbc:postgresql", "set session characteristics as transaction read only"),
    "postgres": ("jdbc:postgresql", "set session characteristics as transaction read only"),
    "mariadb": ("jdbc:mariadb", "set session transaction read only"),
    "mysql": ("jdbc:mariadb", "set session transaction read only"),
}
_EXPECTED = "postgresql://, mariadb://, mysql://, redis:// or mongodb://, e.g. postgresql://me@127.0.0.1:5432/shop"


@dataclass(frozen=True)
class Answers:
    """Setting -> value in force, and file below the data directory -> table."""

    settings: Mapping[str, str]
    tables: Mapping[str, str]


def ask_server(dbms: Dbms, url: str) -> Answers:
    """Return what the server answers to the questions of its spec. UserError: it cannot be reached, or does not say."""
    if dbms.connection is None:
        raise UserError(f"--connect: specs/dbms/{dbms.name}.yaml has no `connection`, so nobody can ask it")
    # Of our environment the client gets what begins with KNOBSCOPE_: not this.
    properties, statements = _read_url(url, os.environ.pop(PASSWORD, None))
    user = find_service_user()
    with open_temporary("knobscope-attach-") as folder:
        folder.chmod(0o711)
        session = Session(
            properties={"recordcount": "1"},
            binding=dbms.connection.binding,
            connection=properties,
            init=statements,
            readback=readback_request(dbms, []),
            directory=folder / "client",
            jvm=dbms.connection.jvm,
            library=dbms.connection.library,
            driver=dbms.connection.driver,
            user=user,
        )
        settings = _ask(session, folder, user) if dbms.readback.by_client else {}
        question = dbms.files.tables.query if dbms.files.tables else None
        tables = {} if question is None else _ask(replace(session, readback={"query": question}), folder, user)
    return Answers(settings, tables)


def _ask(session: Session, folder: Path, user: str | None) -> Mapping[str, str]:
    start = partial(supervise, user=user, reach=[folder, clients_directory()])
    try:
        return read_back(session, start).effective
    except GeneratorError as error:
        raise UserError(f"--connect: the server did not answer: {error}\n{error.log_tail}".rstrip()) from error


def _read_url(url: str, password: str | None = None) -> tuple[dict[str, str], list[str]]:
    """Return the properties of the client's binding and the first statements of a session."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        # Neither the address nor the error is repeated: the password may be in it.
        unreadable = "found an address that cannot be read (in a password / is written %2F, # %23, ? %3F, @ %40)"
        raise UserError(f"--connect: {unreadable}; expected {_EXPECTED}") from error
    password = unquote(parts.password) if parts.password else password
    if parts.scheme in _JDBC:
        scheme, read_only = _JDBC[parts.scheme]
        place = parts.netloc.rpartition("@")[2] or "127.0.0.1"
        properties = {"jdbc.url": SplitResult(scheme, place, parts.path or "/", parts.query, "").geturl()}
        properties |= {"jdbc.user": unquote(parts.username)} if parts.username else {}
        return properties | ({"jdbc.password": password} if password else {}), [read_only]
    if parts.scheme == "redis":
        if parts.hostname not in (None, "127.0.0.1", "localhost"):
            raise UserError(f"--connect: found host {parts.hostname}; expected 127.0.0.1 or a socket, redis:///run/x")
        properties = {"redis.port": str(port or 6379)} if parts.hostname else {"redis.socket": parts.path}
        return properties | ({"redis.password": password} if password else {}), []
    if parts.scheme == "mongodb":
        if password and parts.username and not parts.password:
            url = url.replace(f"{parts.username}@", f"{parts.username}:{quote(password, safe='')}@", 1)
        return {"mongodb.url": url}, []
    raise UserError(f"--connect: found {parts.scheme or 'no scheme'}; expected {_EXPECTED}")
