"""One check per thing that a study may need. Each is tried, not guessed; nothing is left behind."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from knobscope.devices import find_block_device
from knobscope.devices.privileged import find_sudo
from knobscope.devices.program import find_program as find_device_program
from knobscope.errors import UserError
from knobscope.generators import DSDGEN, find_clients, find_java
from knobscope.processes import make_sandbox, open_network
from knobscope.servers import limit_memory
from knobscope.specs import (
    FETCH_DRIVERS,
    Dbms,
    Generator,
    Program,
    SpecErrors,
    ask_version,
    find_driver,
    find_path,
    find_program,
    read_spec,
)
from knobscope.specs.models.transport import read_transport
from knobscope.watch import open_watch
from knobscope.watch.interface import ProbeName

Group = Literal["DBMS", "generator", "tool", "system", "device", "load"]
_MIN_JAVA = 17


@dataclass(frozen=True)
class Finding:
    """One thing: whether it can be used, what was found (a version, a path), or how to get it."""

    group: Group
    name: str
    usable: bool
    required: bool
    text: str


def examine(specs: Path) -> list[Finding]:
    """Return what this machine has of all that the specs in a folder, and knobscope itself, can use."""
    return [*_check_dbms(specs / "dbms"), *_check_generators(specs / "generators"), *_check_tools(), *_check_system()]


def _check_dbms(folder: Path) -> Iterator[Finding]:
    for file in sorted(folder.glob("*.yaml")):
        try:
            dbms = read_spec(file, Dbms, None)[1]
        except SpecErrors as error:
            yield _wrong_spec("DBMS", file, error)
            continue
        usable, text = attempt(lambda dbms=dbms: _describe_dbms(dbms))  # type: ignore[misc]
        yield Finding("DBMS", dbms.name, usable, False, text)


def _wrong_spec(kind: Literal["DBMS", "generator"], file: Path, error: SpecErrors) -> Finding:
    return Finding(kind, file.stem, False, False, f"its spec is wrong: knobscope validate {file} ({error})")


def _describe_dbms(dbms: Dbms) -> str:
    missing = _missing(dbms.programs, find_program) + _missing(dbms.paths, find_path)
    if missing:
        raise UserError("; ".join(dict.fromkeys(missing)))
    if dbms.connection is not None and dbms.connection.library is not None:
        folder = find_clients() / "bindings" / dbms.connection.library
        if not folder.is_dir():
            raise UserError(f"{folder} is missing; make setup")
    driver = dbms.connection.driver if dbms.connection is not None else None
    if driver is not None and not find_driver(driver):
        raise UserError(f"no jars of {driver}; {FETCH_DRIVERS}")
    if dbms.version is None:
        return f"in the process of its client{f' ({driver})' if driver else ''}"
    return ask_version(dbms.version, dbms.programs, dbms.paths)


def _missing(wanted: dict[str, Program], find: Callable[[Program], Path | None]) -> list[str]:
    return [f"no {', '.join(program.find)}; {program.remedy}" for program in wanted.values() if find(program) is None]


def _check_generators(folder: Path) -> Iterator[Finding]:
    usable, text = attempt(lambda: str(find_clients()))
    yield Finding("generator", "ycsb", usable, True, text)
    yield _check_programs("tpcds", {"python": DSDGEN})
    for file in sorted(folder.glob("*.yaml")):
        try:
            generator = read_spec(file, Generator, None)[1]
        except SpecErrors as error:
            yield _wrong_spec("generator", file, error)
        else:
            yield _check_programs(generator.name, generator.programs)


def _check_programs(name: str, programs: dict[str, Program]) -> Finding:
    missing = _missing(programs, find_program)
    paths = [str(find_program(program)) for program in programs.values()]
    return Finding("generator", name, not missing, False, "; ".join(missing or paths))


def _check_tools() -> Iterator[Finding]:
    usable, text = attempt(_describe_java)
    yield Finding("tool", "java", usable, True, text)
    yield _tool("fio", ["fio", "--version"], "apt-get install fio", required=True)
    yield _tool("mkfs.ext4", ["mkfs.ext4", "-V"], "apt-get install e2fsprogs", required=False)
    yield _tool("slurm", ["sbatch", "--version"], "a Slurm cluster, for profiles/slurm only", required=False)


def _describe_java() -> str:
    remedy = f"apt-get install openjdk-{_MIN_JAVA}-jdk-headless"
    try:
        java = find_java()
    except UserError as error:
        raise UserError(f"{error}; {remedy}") from error
    said = _run([java, "-version"], remedy)
    version = re.search(r'version "((\d+)[^"]*)"', said)  # lines about JAVA_TOOL_OPTIONS may come before it
    if version is None or int(version[2]) < _MIN_JAVA:
        raise UserError(f"version {version[1] if version else said}; {remedy}")
    return version[1]


def _tool(name: str, command: list[str], remedy: str, *, required: bool) -> Finding:
    usable, text = attempt(lambda: _run(command, remedy).splitlines()[0])
    return Finding("tool", name, usable, required, text)


def _run(command: list[str], remedy: str) -> str:
    """Return what a program says of itself; some say it on standard error."""
    program = shutil.which(command[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        raise UserError(f"not found; {remedy}")
    output = subprocess.run([program, *command[1:]], capture_output=True, text=True, timeout=30, check=False)
    said = (output.stdout + output.stderr).strip()
    if output.returncode:
        raise UserError(f"exit code {output.returncode}: {said[-200:]}; {remedy}")
    return said or program


def _check_system() -> Iterator[Finding]:
    for name, describe in (
        ("block monitor", _describe_monitor),
        ("memory limit", _describe_memory),
        ("namespaces", _describe_namespaces),
        ("loop devices", _describe_loops),
        ("modelled devices", _describe_models),
    ):
        usable, text = attempt(describe)
        yield Finding("system", name, usable, False, text)


def _describe_monitor() -> str:
    with open_watch(find_block_device(Path.cwd()), unit=4096, scope="process", probes=get_args(ProbeName)) as watch:
        if watch.reason is not None:
            raise UserError(f"{watch.reason}; sums from procfs are used instead")
        missing = [f"no {probe} ({reason})" for probe, reason in watch.missing_probes.items()]
        return "; ".join(["BPF", *missing, *watch.limits])


def _describe_memory() -> str:
    with limit_memory(64):
        return "control group"


def _describe_namespaces() -> str:
    with make_sandbox(), open_network() as network:
        own = "processes, shared memory and temporary files of each run are its own"
        return own if network is None else f"{own}, and so is its network"


def _describe_loops() -> str:
    if not Path("/dev/loop-control").exists():
        raise UserError("no /dev/loop-control; modprobe loop")
    if os.geteuid() != 0:
        find_sudo()
    return "for emulated devices"


def _describe_models() -> str:
    find_device_program()
    if not Path("/dev/fuse").exists():
        raise UserError("no /dev/fuse; modprobe fuse")
    transport = read_transport()
    if transport is None:
        return "not measured yet what this machine can emulate; knobscope devices calibrate"
    return (
        f"up to {transport.read_iops:.0f} reads or {transport.write_iops:.0f} writes of 4 KiB a second, "
        f"from {transport.read_us:.0f} us (read), {transport.write_us:.0f} us (write), "
        f"{transport.flush_us:.0f} us (flush) on"
    )


def attempt(describe: Callable[[], str]) -> tuple[bool, str]:
    """Return whether something works, and what it says of itself, or why it does not."""
    try:
        return True, describe()
    except UserError as error:
        return False, str(error)
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        return False, f"{type(error).__name__}: {error}"
