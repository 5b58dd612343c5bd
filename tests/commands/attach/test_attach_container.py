"""A server in a container of podman, found by the container's name, with the files of its volume."""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from loop_devices import Loop
from servers import count_added, start_attach
from waiting import wait_until

from knobscope.commands.attach.target import find_target

pytestmark = pytest.mark.real

_NAME = f"knobscope-attach-test-{os.getpid()}"
_LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]
_RUN = ["podman", "--cgroup-manager=cgroupfs", "run", "--detach", "--rm", *_LIMITS, "--network", "host"]


@pytest.fixture
def container(device: Loop) -> Iterator[str]:
    """Redis with its data on a volume of the loop device; the container's files are those of this machine."""
    if shutil.which("podman") is None or shutil.which("redis-server") is None:
        pytest.skip("needs podman and Redis")
    folder = Path(str(device.mount)) / "volume"
    folder.mkdir()
    server = ["redis-server", "--port", "63795", "--dir", "/srv", "--appendonly", "yes", "--appendfsync", "always"]
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        for runtime in ("runc", "crun"):
            command = [*_RUN[:2], "--runtime", runtime, *_RUN[2:], "--name", _NAME, "--volume", f"{folder}:/srv"]
            done = subprocess.run([*command, "--rootfs", "/:O", *server], capture_output=True, text=True, check=False)
            if done.returncode == 0:
                break
        else:
            pytest.skip(f"podman runs no container here: {done.stderr.strip()[-200:]}")
        stack.callback(subprocess.run, ["podman", "kill", _NAME], capture_output=True, check=False)
        assert wait_until(lambda: subprocess.run(_PING, capture_output=True, check=False).stdout == b"PONG\n")
        yield _NAME


_PING = ["redis-cli", "-p", "63795", "ping"]


def test_container_is_watched_in_its_cgroup(container: str, device: Loop, tmp_path: Path) -> None:
    out = tmp_path / "attached.json"
    with count_added(device) as added, start_attach("--container", container, "--json", str(out)) as attached:
        attached.wait_watching()
        load = ["redis-benchmark", "-q", "-p", "63795", "-c", "1", "-n", "200", "-t", "set"]
        with added.watched():
            subprocess.run(load, capture_output=True, check=True)
        attached.finish()
    found = json.loads(out.read_text())
    assert found["server"]["dbms"] == "redis"
    assert found["server"]["data"] == "/srv", "as the container sees it"
    assert found["name"] == device.block.name
    assert not found["server"]["is_moved"]
    flushes = next(row["device_requests"] for row in found["io_profile"] if row["op"] == "flush")
    assert added.least[15] <= flushes <= added.most[15]
    assert any(file["name"].startswith("appendonlydir/") and file["purpose"] == "log" for file in found["busy_files"])


def test_container_is_found_by_its_id(container: str) -> None:
    identifier = subprocess.check_output(["podman", "inspect", "--format", "{{.Id}}", container], text=True).strip()
    nothing = dict.fromkeys(("cgroup", "unit", "pid", "port"))
    by_name, *by_id = (
        find_target(argparse.Namespace(container=name, **nothing)) for name in (container, identifier, identifier[:12])
    )
    assert by_id == [by_name, by_name]
    assert str(by_name.place.cgroup).endswith(f"libpod-{identifier}")
