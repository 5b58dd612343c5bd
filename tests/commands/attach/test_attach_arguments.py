"""What attach says to arguments that mean no server, and which questions a URL stands for."""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from reused_numbers import start_as
from waiting import wait_until

from knobscope.cli import main
from knobscope.commands.attach import processes, program, target
from knobscope.commands.attach.connecting import _read_url
from knobscope.commands.attach.data import find_data
from knobscope.commands.attach.target import _list_containers, find_target
from knobscope.devices import find_block_device
from knobscope.errors import UserError

ROOT = Path(__file__).parents[3]
#: Two processes that begin within a tick of the kernel's clock have begun at the same time.
_TICK_S = 2 / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--pid", "4194304"], "there is no process 4194304"),
        (["--port", "1"], "no process that listens on port 1"),
        (["--cgroup", "/no/such"], "there is no cgroup /no/such"),
        (["--container", "no-such-container"], "no running container no-such-container"),
    ],
)
def test_a_server_that_is_not_there_is_an_error(
    arguments: list[str], words: str, refuses: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")  # no tool of containers is asked
    assert words in refuses("attach", *arguments)


@pytest.mark.real
def test_a_server_that_ended_is_not_another_process_with_its_number() -> None:
    with subprocess.Popen(["sleep", "600"]) as server:
        target = find_target(
            argparse.Namespace(pid=server.pid, port=None, container=None, cgroup=None, unit=None, move=False)
        )
        was_alive = target.is_alive
        server.kill()
    time.sleep(_TICK_S)
    assert was_alive
    assert not target.is_alive
    with start_as(target.pid, ["sleep", "600"]) as stranger:
        is_alive = target.is_alive
        stranger.kill()
    assert not is_alive


@pytest.mark.real
def test_a_stranger_with_the_number_of_a_child_that_ended_is_not_counted() -> None:
    children = "sleep 600 & echo $!; wait; read line"
    with subprocess.Popen(["sh", "-c", children], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        child = int(server.stdout.readline())
        target = find_target(
            argparse.Namespace(pid=server.pid, port=None, container=None, cgroup=None, unit=None, move=False)
        )
        both = target.list_processes()
        os.kill(child, signal.SIGKILL)
        is_gone = wait_until(lambda: not Path("/proc", str(child)).exists())
        time.sleep(_TICK_S)
        with start_as(child, ["sleep", "600"]) as stranger:
            found = target.list_processes()
            stranger.kill()
        server.kill()
    assert is_gone
    assert (both, found) == ([server.pid, child], [server.pid])


def test_a_port_whose_process_ends_meanwhile_is_looked_up_again(
    process: int, refuses: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    answers = [ended.pid, process]
    monkeypatch.setattr(target, "_find_listener", lambda _: answers.pop(0))
    asked = argparse.Namespace(pid=None, port=5432, container=None, cgroup=None, unit=None, move=False)
    assert find_target(asked).pid == process
    monkeypatch.setattr(target, "_find_listener", lambda _: ended.pid)
    said = refuses("attach", "--port", "5432", "--for", "1s")
    assert f"process {ended.pid}, which listened on port 5432, has ended" in said


def test_who_has_just_ended_listens_on_no_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server's child has the server's sockets until it closes them, or ends."""
    for module in (processes, program, target):
        monkeypatch.setattr(module, "PROC", tmp_path)
    for pid in (7, 9):
        for name in ("fd", "ns", "net"):
            (tmp_path / str(pid) / name).mkdir(parents=True)
        (tmp_path / str(pid) / "fd/3").symlink_to("socket:[11]")
        (tmp_path / str(pid) / "ns/net").symlink_to("net:[1]")
        (tmp_path / str(pid) / "net/tcp").write_text("head\n0: 0100007F:1538 00000000:0000 0A - - - - - 11\n")
    (tmp_path / "9/comm").write_text("postgres\n")
    assert target._find_listener(0x1538) == 9


def test_who_started_attach_is_no_server(refuses: Callable[..., str]) -> None:
    said = refuses("attach", "--pid", str(os.getppid()), "--for", "1s")
    assert "is an ancestor of attach itself, and no spec knows it; expected" in said


def test_a_process_without_files_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen(["sh", "-c", "read line"], stdin=subprocess.PIPE, cwd="/") as process:
        assert main(["attach", "--pid", str(process.pid), "--for", "1s"]) == 2
        process.kill()
    assert f"process {process.pid} (sh) has no file open for writing" in capsys.readouterr().err


_ID, _OUTER = "0123456789ab" + 52 * "c", 64 * "d"


@pytest.mark.parametrize(
    ("container", "below"),
    [
        (f"/machine.slice/libpod-{_ID}.scope", "/container"),
        (f"/user.slice/db.service/libpod-payload-{_ID}", ""),
        (f"/libpod_parent/libpod-{_ID}", ""),
        (f"/system.slice/docker-{_ID}.scope", "/init.scope"),
        (f"/docker/{_ID}", ""),
        (f"/docker/{_OUTER}/kubelet/kubepods/besteffort/pod1-2/{_ID}", "/app"),
        (f"/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-{_ID}.scope", ""),
        (f"/kubepods.slice/kubepods-pod1_2.slice/crio-{_ID}.scope", "/container"),
    ],
)
def test_containers_are_known_by_their_cgroups(container: str, below: str) -> None:
    assert _list_containers(container + below)[-1] == (_ID, container)
    if _OUTER in container:
        assert _list_containers(container + below)[0] == (_OUTER, f"/docker/{_OUTER}")


@pytest.mark.parametrize(
    "group", [f"/machine.slice/libpod-conmon-{_ID}.scope", f"/x/crio-conmon-{_ID}.scope", f"/x/{_ID[:12]}", "/a/b"]
)
def test_what_watches_over_a_container_is_not_in_it(group: str) -> None:
    assert _list_containers(group) == []


@pytest.mark.parametrize("arguments", [[], ["--pid", "1", "--port", "2"], ["--pid", "1", "--for", "soon"]])
def test_arguments_that_contradict_each_other_are_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["attach", *arguments])
    assert ended.value.code == 2


@pytest.fixture
def process() -> Iterator[int]:
    """A process that is no server, with a file open."""
    with subprocess.Popen(["sh", "-c", "read line"], stdin=subprocess.PIPE, cwd=ROOT) as started:
        yield started.pid
        started.kill()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--connect", "postgresql://x"], "no spec knows"),
        (["--write-study", "specs/studies/x.yaml"], "no spec says how"),
    ],
)
def test_an_unknown_program_cannot_be_asked(
    process: int, arguments: list[str], words: str, refuses: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    assert words in refuses("attach", "--pid", process, *arguments)


def test_urls_become_properties_of_the_client() -> None:
    found, statements = _read_url("postgresql://me:p%40ss@127.0.0.1:5432/shop?sslmode=require", "other")
    assert found == {
        "jdbc.url": "jdbc:postgresql://127.0.0.1:5432/shop?sslmode=require",
        "jdbc.user": "me",
        "jdbc.password": "p@ss",
    }
    assert "read only" in statements[0]
    assert _read_url("mysql://me@127.0.0.1:3306/x", "from outside")[0]["jdbc.password"] == "from outside"
    assert _read_url("redis:///run/s", "from outside")[0] == {
        "redis.socket": "/run/s",
        "redis.password": "from outside",
    }
    assert _read_url("redis://127.0.0.1:7")[0]["redis.port"] == "7"
    for wrong in ("redis://elsewhere:1", "oracle://x", "nonsense"):
        with pytest.raises(UserError, match="expected"):
            _read_url(wrong)


_WRITER = "import sys; file = open(sys.argv[1], 'w'); print('open', flush=True); input()"


@pytest.mark.parametrize("place", ["inside", "elsewhere", "nowhere"])
def test_data_lie_where_a_server_writes(tmp_path: Path, place: str) -> None:
    """Some servers work in their data directory, others wherever they were started."""
    home, data = tmp_path / "home", tmp_path / "data"
    for directory in (home, data / "journal"):
        directory.mkdir(parents=True)
    target = {"inside": home / "x", "elsewhere": data / "journal" / "x", "nowhere": Path("/dev/null")}[place]
    command = [sys.executable, "-c", _WRITER, str(target)]
    with subprocess.Popen(command, cwd=home, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"open\n"
        found = find_data(process.pid, [process.pid], None)
        process.kill()
    assert found.directory == (data / "journal" if place == "elsewhere" else home)
    assert found.block == find_block_device(home)
