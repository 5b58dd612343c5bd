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

from knobscope.commands.attach.processes import PROC, find_hierarchy, find_top, list_group, read_cgroup
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
#: What knows containers by name, and how it is asked for the number of their first process.
_CONTAINER_TOOLS = {
    "podman": ["inspect", "--type", "container", "--format", "{{.State.Pid}}"],
    "docker": ["inspect", "--type", "container", "--format", "{{.State.Pid}}"],
    "crictl": ["inspect", "--output", "go-template", "--template", "{{.info.pid}}"],
}
_TOOL_S = 20


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
    pid = args.pid
    if args.port is not None:
        pid = _find_listener(args.port)
    if args.container is not None:
        pid = _find_container(args.container)
    assert pid is not None  # noqa: S101 - the parser wants one of them
    if PROC / str(pid) not in PROC.iterdir():  # which lists no threads, though they exist there
        raise UserError(f"attach: there is no process {pid}")
    group = read_cgroup(pid)
    if args.container is not None and group not in (None, "/"):
        return _find_in_group(_find_container_group(group or "/", args.container))
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
    return Target(top, began, Place([top], is_moved=args.move))


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
    with contextlib.suppress(UserError):  # it has ended
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


def _find_container(name: str) -> int:
    """Return the first process of a container: by its id in the names of cgroups, or as the container's tool says."""
    if _CONTAINER_ID.fullmatch(name):
        for process in sorted(int(entry.name) for entry in PROC.glob("[0-9]*")):
            with contextlib.suppress(OSError, UserError):  # it has ended
                if any(identifier.startswith(name) for identifier, _ in _list_containers(read_cgroup(process) or "/")):
                    return process
    tools = [tool for tool in _CONTAINER_TOOLS if shutil.which(tool)]
    for tool in tools:
        with contextlib.suppress(UserError):  # another tool may know it
            pid = _ask([tool, *_CONTAINER_TOOLS[tool], "--", name])
            if pid.isdigit() and pid != "0":
                return int(pid)
    detail = f"asked: {', '.join(tools)}" if tools else f"none of {', '.join(_CONTAINER_TOOLS)} is installed"
    raise UserError(f"attach: no running container {name} ({detail}); expected a name, or an id of 12 digits or more")


def _find_container_group(group: str, name: str) -> str:
    """Return the cgroup of a container, all of it, by that of one of its processes; the innermost one if named."""
    containers = _list_containers(group)
    named = [where for identifier, where in containers if identifier.startswith(name)]
    return (named or [where for _, where in containers] or [group])[-1]


def _list_containers(group: str) -> list[tuple[str, str]]:
    """Return id and cgroup of the containers that a process in a cgroup is in, from outside in.

    By their names: podman and CRI-O (`libpod-ID.scope`, `crio-ID.scope`, below it `container`), docker, nerdctl and
    Kubernetes' containerd (`docker-ID.scope`, `cri-containerd-ID.scope`), and all of these without systemd
    (`/docker/ID`, `/kubepods/burstable/podUID/ID`).
    """
    path = Path(group)
    names = [(part, _CONTAINER_GROUP.fullmatch(part.name)) for part in (*reversed(path.parents), path)]
    return [(name["id"], str(part)) for part, name in names if name and not (name["runtime"] or "").endswith(_WATCHES)]


def _ask(command: list[str]) -> str:
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=_TOOL_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise UserError(f"attach: {command[0]} does not answer: {problem}") from problem
    if result.returncode:
        raise UserError(f"attach: {' '.join(command)}: {result.stderr.strip() or f'exit code {result.returncode}'}")
    return result.stdout.strip()


def _find_listener(port: int) -> int:
    """Return the process that listens on a TCP port, in whatever network namespace.

    Of several a server of a DBMS comes first (others hold its socket or pass on what comes in: systemd, docker-proxy),
    then one of this network namespace, then the one with the smallest number.
    """
    sockets = set(_list_listening(port))
    holders = [int(entry.name) for entry in PROC.glob("[0-9]*") if _holds(entry, sockets)]
    own = _read_namespace(os.getpid())
    if holders:
        return min(holders, key=lambda pid: (not is_server(pid), _read_namespace(pid) != own, pid))
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
