"""Ordinary users with sudo: each may attach to servers of their own, and to no other's.

Users, the line in sudoers and the installed monitor are seen in a mount namespace of this test only.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from servers import ROOT

from knobscope.servers.instance import find_free_ports

pytestmark = [pytest.mark.real, pytest.mark.long]

_UIDS = {"knobscope-test-a": 61111, "knobscope-test-b": 61112}
_SCRIPT = """
set -eu
for file in passwd group shadow; do mount --bind "$WORK/$file" /etc/$file; done
mount --bind "$WORK/sudoers" /etc/sudoers.d
mount -t tmpfs -o mode=755 none /usr/local/lib
"$ROOT/setup/install-helper.sh" >/dev/null
ls /usr/local/lib/knobscope/probes/__pycache__/kernel.* >/dev/null
exec setpriv --reuid=$ATTACHER --regid=$ATTACHER --clear-groups "$PYTHON" -m knobscope attach --port $PORT --for 2s
"""


@pytest.mark.parametrize("owner", list(_UIDS))
def test_a_user_attaches_to_own_servers_only(owner: str) -> None:
    if os.geteuid() != 0 or not all(map(shutil.which, ("sudo", "redis-server", "redis-cli", "setpriv", "unshare"))):
        pytest.skip("needs root, sudo, Redis and util-linux")
    system_python = "/usr/bin/python3"
    version = subprocess.run(
        [system_python, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True, check=False
    )
    if version.stdout.strip() != str(sys.version_info[:2]):
        pytest.skip("the system's Python cannot import what this one has installed")
    work = Path("/var/tmp") / f"knobscope-attach-users-{os.getpid()}"
    work.mkdir(mode=0o755)
    attacher, port = _UIDS["knobscope-test-a"], str(find_free_ports()[0])
    try:
        write_accounts(work)
        home = work / "data"
        home.mkdir()
        shutil.chown(home, _UIDS[owner], _UIDS[owner])
        command = ["redis-server", "--port", port, "--dir", str(home), "--appendonly", "yes"]
        with subprocess.Popen(
            command, user=_UIDS[owner], group=_UIDS[owner], extra_groups=[], stdout=subprocess.DEVNULL, cwd="/"
        ) as server:
            ping = ["redis-cli", "-p", port, "ping"]
            while subprocess.run(ping, capture_output=True, check=False).stdout != b"PONG\n":
                assert server.poll() is None
            environment = {
                "PATH": os.environ["PATH"], "HOME": "/tmp", "ROOT": str(ROOT), "WORK": str(work), "PORT": port,
                "PYTHON": system_python, "ATTACHER": str(attacher), "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONPATH": f"{ROOT / 'src'}:{sysconfig.get_path('purelib')}",
            }  # fmt: skip
            unshare = ["unshare", "--mount", "--propagation", "slave", "sh", "-c", _SCRIPT]
            done = subprocess.run(unshare, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
            server.terminate()
    finally:
        shutil.rmtree(work)
    if owner == "knobscope-test-a":
        assert done.returncode == 0, done.stderr
        assert "monitor bpf" in done.stdout, done.stdout + done.stderr
    else:
        assert done.returncode == 2
        assert "its process is another user's: run attach as root" in done.stderr


def write_accounts(work: Path) -> None:
    """Copies of the machine's accounts with two more, and a line for sudo for the first of them."""
    for name in ("passwd", "group", "shadow"):
        shutil.copy(Path("/etc") / name, work / name)
    for name, uid in _UIDS.items():
        lines = {
            "passwd": f"{name}:x:{uid}:{uid}::/tmp:/bin/sh",
            "group": f"{name}:x:{uid}:",
            "shadow": f"{name}:!:19000:0:99999:7:::",
        }
        for file, line in lines.items():
            with (work / file).open("a") as opened:
                opened.write(f"{line}\n")
    sudoers = work / "sudoers" / "knobscope"
    sudoers.parent.mkdir(mode=0o750)
    allowed = "/usr/bin/python3 -I /usr/local/lib/knobscope/probes/monitor.py *"
    sudoers.write_text(f"knobscope-test-a ALL=(root) NOPASSWD: {allowed}\n")
    sudoers.chmod(0o440)
