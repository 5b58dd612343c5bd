"""Which running container a name or the beginning of an id means, and what is run to find out."""

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from knobscope.commands.attach import target
from knobscope.commands.attach.target import _CONTAINER_TOOLS, _find_container
from knobscope.errors import UserError

_ID, _ALIKE = "0123456789ab" + 52 * "c", "0123456789ab" + 52 * "e"
_OUTER = 64 * "d"
_Place = Callable[[dict[int, str]], None]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Place:
    """Say in which cgroups processes are, as /proc/PID/cgroup does; no tool of containers is asked."""
    monkeypatch.setattr(target, "PROC", tmp_path)
    monkeypatch.setenv("PATH", "")

    def write(groups: dict[int, str]) -> None:
        for pid, lines in groups.items():
            (tmp_path / str(pid)).mkdir()
            (tmp_path / str(pid) / "cgroup").write_text(lines)

    return write


@pytest.mark.parametrize("second", [f"/default/{_ALIKE}", f"/user.slice/{_ID}"])
def test_an_id_that_means_two_cgroups_is_refused(place: _Place, second: str) -> None:
    """The second one may be another container, or the cgroup of somebody who may make cgroups and gives it the name."""
    first = f"/docker/{_ID}"
    place({7: f"0::{first}\n", 8: f"0::{first}/inner\n", 9: f"0::{second}\n"})
    with pytest.raises(UserError, match="means 2 running containers") as refused:
        _find_container(_ID[:12])
    assert first in str(refused.value)
    assert second in str(refused.value)
    if _ALIKE in second:
        assert _find_container(_ALIKE) == (9, second)


@pytest.mark.parametrize(
    ("group", "name", "container"),
    [
        (f"4:memory:/docker/{_ID}\n0::/\n", _ID, f"/docker/{_ID}"),
        (f"4:memory:/x/docker/{_ID}\n0::/docker/{_ID}\n", _ID, f"/docker/{_ID}"),
        (f"0::/docker/{_OUTER}/docker/{_ID}\n", _ID, f"/docker/{_OUTER}/docker/{_ID}"),
        (f"0::/docker/{_OUTER}/docker/{_ID}\n", _OUTER, f"/docker/{_OUTER}"),
    ],
)
def test_the_container_that_is_named_is_found(place: _Place, group: str, name: str, container: str) -> None:
    place({7: group})
    assert _find_container(name[:12]) == (7, container)


@pytest.mark.parametrize("path", ["", ".", "bin"])
def test_no_tool_in_the_working_directory_is_run(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: Callable[..., str]
) -> None:
    for tool in _CONTAINER_TOOLS:
        program = tmp_path / path / tool
        program.parent.mkdir(exist_ok=True)
        program.write_text("#!/bin/sh\n: > ran\n")
        program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{path}:/no/such/directory")
    assert "is installed" in refuses("attach", "--container", "db")
    assert not (tmp_path / "ran").exists()


@pytest.mark.real
def test_each_runtime_is_asked(place: _Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """crictl asks one runtime: the one that it is configured for, or the first of those that it knows."""
    place({7: f"0::/kubepods/pod1/{_ID}\n", 9: f"0::/kubepods/pod2/{_OUTER}\n"})
    tool, runtimes = tmp_path / "bin/crictl", [str(tmp_path / name) for name in ("containerd", "crio", "not-here")]
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\ncase "$*" in *unix://{runtimes[1]}*--name*db*) echo {_OUTER} ;; esac\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent))
    monkeypatch.setattr(target, "_RUNTIMES", runtimes)
    with socket.socket(socket.AF_UNIX) as first, socket.socket(socket.AF_UNIX) as second:
        first.bind(runtimes[0])
        second.bind(runtimes[1])
        assert _find_container("db") == (9, f"/kubepods/pod2/{_OUTER}")


@pytest.mark.real
def test_a_program_that_holds_a_port_for_a_container_is_no_server(refuses: Callable[..., str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        holder = subprocess.Popen(["sleep", "600"], pass_fds=[listening.fileno()])  # as nerdctl does
    with holder:
        try:
            said = refuses("attach", "--port", port, "--for", "1s")
        finally:
            holder.kill()
    assert f"port {port} is held by sleep, process {holder.pid}," in said
