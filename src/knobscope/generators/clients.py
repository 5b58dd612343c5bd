"""Finds the Java clients and says how they are started fast."""

import os
import platform
import re
import shutil
from pathlib import Path

from knobscope.errors import UserError
from knobscope.specs import FETCH_DRIVERS, Jvm, clients_directory, find_driver

_JAR = "knobscope-clients.jar"

#: A client is started for every run and lives for seconds, so it is tuned for its first seconds.
_OPTIONS = (
    "-XX:-UsePerfData",
    "-Xshare:auto",
    "-Xrs",  # a signal ends it, so that its exit code tells which
    # htrace, which YCSB carries, would spend 20 ms looking for somebody to log to
    "-Dorg.apache.htrace.shaded.commons.logging.Log=org.apache.htrace.shaded.commons.logging.impl.NoOpLog",
)
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC")
#: Measured on two cores: without the optimising compiler (C2) throughput is at its level in the first second, with it
#: a run is half as fast at first and takes three seconds or more to get there, in the middle of what is measured.
_JIT = {"c1": ("-XX:TieredStopAtLevel=1",), "tiered": ()}


def find_clients() -> Path:
    """Return the directory with the built clients: KNOBSCOPE_CLIENTS, or clients/target next to the checkout.

    Raises UserError when they are not built.
    """
    directory = clients_directory()
    if not (directory / _JAR).is_file() or not (directory / "lib").is_dir():
        origin = " (from KNOBSCOPE_CLIENTS)" if "KNOBSCOPE_CLIENTS" in os.environ else ""
        raise UserError(
            f"the load clients are not built: {directory}{origin} should hold {_JAR} and lib/; "
            "run `make setup` in the checkout, or let KNOBSCOPE_CLIENTS name clients/target of a checkout"
        )
    return directory


def client_libraries(library: str | None) -> list[Path]:
    """Return the jars of others that the load client runs with: YCSB, drivers, and those of a folder of `bindings/`.

    UserError when the clients are not built.
    """
    clients = find_clients()
    return sorted([*clients.glob("lib/*.jar"), *(clients.glob(f"bindings/{library}/*.jar") if library else ())])


def find_java() -> str:
    """Return the java program: that of JAVA_HOME, else the first on PATH. Raises UserError when there is none."""
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=f"{home}/bin" if home else None)
    if program is None:
        where = f"{home}/bin (JAVA_HOME)" if home else "PATH"
        raise UserError(f"no java program in {where}; the load clients need a Java runtime, version 17 or later")
    return program


def java_command(directory: Path, jvm: Jvm, library: str | None = None, driver: str | None = None) -> list[str]:
    """Return the command line that starts the client's JVM, up to the main class.

    `directory` takes what a driver writes to disk for itself; `library` is a folder of `bindings/` whose jars are
    added, `driver` a JDBC driver by its Maven coordinates. UserError when they are not there.
    """
    clients = find_clients()
    native = clients / "native" / "org" / "sqlite" / "native" / "Linux" / platform.machine()
    options = [f"-XX:SharedArchiveFile={clients / 'knobscope.jsa'}", f"-Dorg.sqlite.tmpdir={directory}"]
    if native.is_dir():
        options += [f"-Dorg.sqlite.lib.path={native}", "-Dorg.sqlite.lib.name=libsqlitejdbc.so"]
    # the jar's manifest names lib/*.jar: one fixed class path, for which the class archive is valid, also when more
    # follows; jars that most runs do not need stay out of it
    class_path = [clients / _JAR, *_further_jars(library, driver)]
    return [find_java(), *options, *java_options(jvm), "-cp", ":".join(map(str, class_path))]


def java_options(jvm: Jvm) -> list[str]:
    """Return the options of the client's JVM that do not depend on where its files lie."""
    options = [f"-Xmx{jvm.heap_mib}m", *_JIT[jvm.jit], *_OPTIONS]
    if not any(_COLLECTOR.fullmatch(option) for option in jvm.options):  # Java refuses two
        options.append("-XX:+UseSerialGC")
    return [*options, *jvm.options]


def client_files(library: str | None, driver: str | None) -> tuple[dict[str, Path], list[str]]:
    """Return all jars that a client runs with, by names under which they can lie elsewhere, and the class path in them.

    Errors as of java_command.
    """
    clients = find_clients()
    usual = {f"lib/{jar.name}": jar for jar in sorted(clients.glob("lib/*.jar"))}
    named = {_JAR: clients / _JAR} | {f"more/{jar.name}": jar for jar in _further_jars(library, driver)}
    return {**usual, **named}, list(named)  # the manifest of the first one names those in lib


def _further_jars(library: str | None, driver: str | None) -> list[Path]:
    """Return the jars of a binding that needs some in addition to the usual ones, and those of its driver."""
    folder = find_clients() / "bindings" / (library or "")
    if library is not None and not folder.is_dir():
        raise UserError(f"no jars for the binding: {folder} is missing; run `make setup` in the checkout")
    jars = sorted(folder.glob("*.jar")) if library is not None else []
    return [*jars, *(_jars_of(driver) if driver is not None else [])]


def _jars_of(driver: str) -> list[Path]:
    jars = find_driver(driver)
    if not jars:
        raise UserError(f"no jars of the driver {driver}; fetch them: {FETCH_DRIVERS}")
    return jars
