"""Finds the server that is meant: by process, systemd unit, container, cgroup or port."""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from knobscope.commands.attach.processes import (
    PROC,
    ProcessEndedError,
    find_hierarchy,
    find_top,
    list_group,
    read_cgroup,
)
from knobscope.commands.attach.program import is_server, read_name
from knobscope.errors import UserError
from knobscope.processes import list_ancestors, list_tree, read_start
from knobscope.watch import Place

_LISTENS = "0A"  # state of a socket in /proc/net/tcp
_CONTAINER_ID = re.compile(r"[0-9a-f]{12,64}")
#: The last part of a container's cgroup: of its runtime and id, as systemd names it, or of its id alone. What
#: watches over a container, as conmon does, has a cgroup of a similar name next to it.
_CONTAINER_GROUP = re.compile(r"(?:(?P<runtime>[\w-]+)-)?(?P<id>[0-9a-f]{64})(?:\.scope)?")
_WATCHES = "conmon"
#: What knows running containers by name. All are asked: several may have a container of one name.
_CONTAINER_TOOLS = ("podman", "docker", "nerdctl", "crictl")
#: Where container runtimes listen that crictl can ask, as its documentation lists them; it asks one at a time.
_RUNTIMES = ("/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/cri-dockerd.sock")
_TOOL_S = 20
#: Programs that hold a port of this machine for a server: podman's, nerdctl's (`sleep infinity`), docker's, systemd's.
_PORT_HOLDERS = {"conmon", "rootlessport", "sleep", "docker-proxy", "systemd"}


@dataclass(frozen=True)
class Target:
    """A running server: its first process, all of its processes, and where they are watched."""

    pid: int
    began: Mapping[int, int | None]  # process -> its time, as the kernel says it; None: it has ended already
    place: Place

    @property
    def is_alive(self) -> bool:
        """Whether the first process still runs."""
        return self._still_runs(self.pid)

    def list_processes(self) -> list[int]:
        """Return the processes that still run, with all their descendants."""
        return list_tree(sorted(filter(self._still_runs, self.began)))

    def _still_runs(self, pid: int) -> bool:
        """Whether a process runs, and not another one with its number."""
        return self.began[pid] is not None and read_start(pid) == self.began[pid]


def find_target(args: argparse.Namespace) -> Target:
    """Return the server that the arguments mean. UserError: there is none, or `--move` has nothing to move."""
    if args.cgroup is not None:
        return _find_in_group(_strip_mount(args.cgroup))
    if args.unit is not None:
        return _find_in_group(_find_unit(args.unit))
    if args.port is not None:
        return _find_on_port(args.port, is_moved=args.move)
    pid = args.pid
    if args.container is not None:
        pid, container = _find_container(args.container)
        if Path(read_cgroup(pid) or "/").is_relative_to(container):
            return _find_in_group(container)
    assert pid is not None  # noqa: S101 - the parser wants one of them
    return _find_around(pid, is_moved=args.move)


def _find_on_port(port: int, *, is_moved: bool) -> Target:
    """Return the server that listens on a port; looks again once when the process that does so has ended meanwhile."""
    with contextlib.suppress(ProcessEndedError):
        return _find_around(_find_listener(port), is_moved=is_moved)
    try:
        return _find_around(_find_listener(port), is_moved=is_moved)
    except ProcessEndedError as ended:
        raise UserError(f"attach: process {ended.pid}, which listened on port {port}, has ended") from ended


def _find_around(pid: int, *, is_moved: bool) -> Target:
    """Return the server that a process belongs to. UserError: it belongs to none; ProcessEndedError."""
    if PROC / str(pid) not in PROC.iterdir():  # which lists no threads, though they exist there
        raise ProcessEndedError(pid)
    group = read_cgroup(pid)
    top = find_top(pid)
    tree = set(list_tree([top]))
    if os.getpid() in tree and not is_server(top):
        raise UserError(
            f"attach: process {top} ({read_name(top)}) is an ancestor of attach itself, and no spec knows it; expected "
            "a process of a DBMS server"
        )
    began = {each: read_start(each) for each in tree}
    if group is not None and _is_own(top, tree, group):
        return Target(top, began, Place([top], cgroup=group))
    return Target(top, began, Place([top], is_moved=is_moved))


def _is_own(top: int, tree: set[int], group: str) -> bool:
    """Whether a cgroup holds a server and whatever started it, and nothing else."""
    return group != "/" and list_group(group) <= tree | set(list_ancestors(top))


def _find_in_group(group: str) -> Target:
    """Return the server in a cgroup: the first process there that runs a DBMS, else the one nearest to the top."""
    members = list_group(group)
    inside = {pid for pid in members if (PROC / str(pid)).exists()}  # others have ended since
    if not inside:
        raise UserError(f"attach: there is no process in cgroup {group}")
    by_age = sorted(inside, key=lambda pid: (len(list_ancestors(pid)), pid))
    first = next((pid for pid in by_age if _runs_server(pid)), by_age[0])
    return Target(first, {pid: read_start(pid) for pid in inside}, Place(by_age, cgroup=group))


def _runs_server(pid: int) -> bool:
    with contextlib.suppress(ProcessEndedError):
        return is_server(pid)
    return False


def _strip_mount(text: str) -> str:
    """Return a cgroup by its path in the hierarchy; it may be given with the mount point before it."""
    hierarchy, path = find_hierarchy(), Path(text)
    if hierarchy is not None and path.is_relative_to(hierarchy):
        path = path.relative_to(hierarchy)
    return f"/{str(path).strip('/')}" if str(path) != "." else "/"


def _find_unit(name: str) -> str:
    shown = _ask(["systemctl", "show", "--property=ControlGroup", "--value", "--", name])
    if not shown:
        raise UserError(f"attach: systemd has no running unit {name}; expected a name as `systemctl status` shows it")
    return shown


def _find_container(name: str) -> tuple[int, str]:
    """Return a process of a running container and the container's cgroup: by its id, or by its name."""
    found = _find_by_id((name,)) if _CONTAINER_ID.fullmatch(name) else {}
    asked: list[str] = []
    failed: list[str] = []
    identifiers: list[str] = []
    for command in () if found else _list_tools():
        try:
            identifiers += _list_named(command, name)
            asked.append(" ".join(command))
        except UserError as problem:  # another tool may know it
            failed.append(str(problem).removeprefix("attach: "))
    found = found or _find_by_id(tuple(identifiers))
    if len(found) > 1:
        groups = ", ".join(sorted(found))
        raise UserError(
            f"attach: {name} means {len(found)} running containers, in cgroups {groups}; expected the id of one, or "
            "--cgroup"
        )
    if found:
        ((container, pid),) = found.items()
        return pid, container
    details = [f"asked: {', '.join(asked)}"] if asked else []
    detail = "; ".join([*details, *failed]) or f"none of {', '.join(_CONTAINER_TOOLS)} is installed"
    raise UserError(f"attach: no running container {name} ({detail}); expected a name, or an id of 12 digits or more")


def _list_tools() -> Iterator[list[str]]:
    """Yield the commands that know containers; crictl as it is configured, and for each runtime that is here."""
    for tool in filter(_find_tool, _CONTAINER_TOOLS):
        yield [tool]
        for runtime in _RUNTIMES if tool == "crictl" else ():
            if Path(runtime).is_socket():
                yield [tool, "--runtime-endpoint", f"unix://{runtime}"]


def _list_named(tool: list[str], name: str) -> list[str]:
    """Return the ids of the running containers that a tool knows by a name. UserError: the tool does not answer."""
    if tool[0] == "crictl":  # pods have names of their own: several may have a container of this one
        return _ask([*tool, "ps", "--quiet", "--name", f"^{re.escape(name)}$"]).split()
    commands = [tool]
    if tool[0] == "nerdctl":  # names belong to a namespace of containerd
        namespaces = _ask([*tool, "namespace", "ls", "--quiet"]).split()
        commands = [[*tool, "--namespace", namespace] for namespace in namespaces]
    listed = [_ask([*command, "ps", "--no-trunc", "--format", "{{.ID}} {{.Names}}"]) for command in commands]
    rows = [row.partition(" ") for row in "\n".join(listed).splitlines()]
    return [identifier for identifier, _, names in rows if name in names.split(",")]


def _find_by_id(beginnings: tuple[str, ...]) -> dict[str, int]:
    """Return the cgroups of the containers whose ids begin so, each with one of its processes.

    Where containers have no cgroup of version 2, they are known by those of version 1.
    """
    found: dict[str, int] = {}
    for process in sorted(int(entry.name) for entry in PROC.glob("[0-9]*")):
        with contextlib.suppress(OSError):  # it has ended
            lines = (PROC / str(process) / "cgroup").read_text(errors="surrogateescape").splitlines()
            groups = (line.split(":", 2)[2] for line in reversed(lines))  # version 2 is the last one
            for identifier, group in next(filter(None, map(_list_containers, groups)), []):
                if identifier.startswith(beginnings):
                    found.setdefault(group, process)
    return found


def _list_containers(group: str) -> list[tuple[str, str]]:
    """Return id and cgroup of the containers that a process in a cgroup is in, from outside in.

    By their names: podman and CRI-O (`libpod-ID.scope`, `crio-ID.scope`, below it `container`), docker, nerdctl and
    Kubernetes' containerd (`docker-ID.scope`, `cri-containerd-ID.scope`), and all of these without systemd
    (`/docker/ID`, `/kubepods/burstable/podUID/ID`).
    """
    path = Path(group)
    names = [(part, _CONTAINER_GROUP.fullmatch(part.name)) for part in (*reversed(path.parents), path)]
    return [(name["id"], str(part)) for part, name in names if name and not (name["runtime"] or "").endswith(_WATCHES)]


def _find_tool(name: str) -> str | None:
    """Return the path of a program. Relative directories in PATH do not count: this one may be anybody's."""
    return shutil.which(name, path=os.pathsep.join(filter(os.path.isabs, os.get_exec_path())))


def _ask(command: list[str]) -> str:
    program = _find_tool(command[0])
    if program is None:
        raise UserError(f"attach: there is no {command[0]} here")
    try:
        result = subprocess.run([program, *command[1:]], capture_output=True, text=True, timeout=_TOOL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise UserError(f"attach: {command[0]} does not answer: {problem}") from problem
    if result.returncode:
        raise UserError(f"attach: {' '.join(command)}: {result.stderr.strip() or f'exit code {result.returncode}'}")
    return result.stdout.strip()


def _find_listener(port: int) -> int:
    """Return the process that listens on a TCP port, in whatever network namespace.

    Of several a server of a DBMS comes first, then one of this network namespace, then the one with the smallest
    number. A process that only holds the port for a server is none.
    """
    sockets = set(_list_listening(port))
    own = _read_namespace(os.getpid())
    servers, holders = [], []
    for pid in (int(entry.name) for entry in PROC.glob("[0-9]*") if _holds(entry, sockets)):
        with contextlib.suppress(ProcessEndedError):  # as a server's child that had its socket for a moment
            name = read_name(pid)
            holders.append((pid, name))
            if name not in _PORT_HOLDERS:
                servers.append((not is_server(pid), _read_namespace(pid) != own, pid))
    if servers:
        return min(servers)[-1]
    if holders:
        pid, name = holders[0]
        raise UserError(
            f"attach: port {port} is held by {name}, process {pid}, for a server that listens "
            "elsewhere; expected that server's own port (inside its container), or --container"
        )
    why = "; its process is another user's: run attach as root" if sockets and os.geteuid() else ""
    raise UserError(f"attach: no process that listens on port {port}{why}")


def _holds(process: Path, sockets: set[str]) -> bool:
    """Whether a process has one of these sockets; one that has ended, or is not ours to ask, has none."""
    try:
        return any(str(link.readlink()) in sockets for link in (process / "fd").iterdir())
    except OSError:
        return False


def _read_namespace(pid: int) -> Path | None:
    try:
        return (PROC / str(pid) / "ns/net").readlink()
    except OSError:
        return None


def _list_listening(port: int) -> Iterator[str]:
    """Yield the sockets that listen on a port, as links in /proc/PID/fd name them."""
    namespaces = set()
    for entry in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            namespace = (entry / "ns" / "net").readlink()
            if namespace in namespaces:
                continue
            namespaces.add(namespace)
            for name in ("tcp", "tcp6"):
                for line in (entry / "net" / name).read_text().splitlines()[1:]:
                    fields = line.split()
                    if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                        yield f"socket:[{fields[9]}]"
