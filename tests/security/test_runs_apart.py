"""Two runs share nothing: neither processes nor shared memory nor temporary files; commands of one run share all."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from ssh_server import descendants
from waiting import wait_until

from knobscope import processes
from knobscope.processes import SERVICE_USER, Sandbox, capture, make_sandbox, open_network, supervise

PROGRAMS = Path(processes.__file__).parent
#: Starts a run as its caller, with the program's files that lie beside it, and a command in it.
ORDINARY = """
import json, os, subprocess, sys
folder, cover, command = sys.argv[1:]
read_end, _ = os.pipe()
python = ["/usr/bin/python3", "-I", "-S"]
first = subprocess.Popen(
    [*python, f"{folder}/first.py", "--lifeline", str(read_end)],
    pass_fds=(read_end,), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
)
number = first.stdout.readline()
if not number:
    sys.exit(first.stderr.read())
run = os.pidfd_open(int(number))
keeper = [*python, f"{folder}/keeper.py", "--lifeline", str(read_end), "--sandbox", str(run), f"--cover=/tmp={cover}"]
subprocess.run([*keeper, "--", "/bin/sh", "-c", command], pass_fds=(read_end, run), check=True)
"""

pytestmark = [pytest.mark.real, pytest.mark.skipif(os.geteuid() != 0, reason="plays two users: needs root")]


@pytest.fixture
def runs() -> Iterator[tuple[Sandbox, Sandbox]]:
    with make_sandbox() as first, make_sandbox() as second:
        yield first, second


def say(sandbox: Sandbox, script: str, *reach: Path) -> str:
    """Run a script in a run and return what it says."""
    process = supervise(
        ["/bin/sh", "-c", script],
        user=SERVICE_USER,
        sandbox=sandbox,
        reach=reach,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
    )
    return capture(process, 30)[1]


def start_sleeper(sandbox: Sandbox) -> tuple["subprocess.Popen[bytes]", int]:
    """Start a process in a run; return its keeper, and its number there, once it is no longer the shell."""
    script = "echo $$; exec sleep 1000.25"
    keeper = supervise(["/bin/sh", "-c", script], user=SERVICE_USER, sandbox=sandbox, stdout=subprocess.PIPE, cwd="/")
    assert keeper.stdout is not None
    inside = int(keeper.stdout.readline())
    assert wait_until(lambda: any(command.startswith("sleep") for command in descendants(keeper.pid).values()))
    return keeper, inside


def test_numbers_of_processes_do_not_begin_with_one(runs: tuple[Sandbox, Sandbox]) -> None:
    """PostgreSQL does not start where the number that a killed server left in a file is that of another process."""
    numbers = [int(say(run, "echo $$")) for run in runs]
    assert min(numbers) > 300
    assert numbers[0] != numbers[1]


def test_a_process_is_seen_and_signalled_in_its_own_run_only(runs: tuple[Sandbox, Sandbox]) -> None:
    keeper, inside = start_sleeper(runs[0])
    outside = next(pid for pid, command in descendants(keeper.pid).items() if command.startswith("sleep"))
    look = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"
    assert "sleep 1000.25" in say(runs[0], look)
    assert "sleep 1000.25" not in say(runs[1], look)
    for number in (inside, outside):
        say(runs[1], f"kill {number}")
    assert keeper.poll() is None
    say(runs[0], f"kill {inside}")
    assert keeper.wait(20) == 128 + 15
    assert keeper.stdout is not None
    keeper.stdout.close()


#: Offers everything by which another process of the same user could be reached, then waits.
OFFER = """
import ctypes, mmap, os, signal, socket
libc = ctypes.CDLL(None)
libc.prctl(0x59616D61, -1)  # PR_SET_PTRACER_ANY: Yama shall not be what keeps others out
listener = socket.socket(socket.AF_UNIX); listener.bind("\\0knobscope-offer"); listener.listen()
port = socket.socket(); port.bind(("127.0.0.1", 45917)); port.listen()
assert libc.shmget(0x6B6E, 4096, 0o1666) >= 0 and libc.semget(0x6B6E, 1, 0o1666) >= 0
assert libc.msgget(0x6B6E, 0o1666) >= 0
os.close(os.open("/dev/shm/knobscope-offer", os.O_CREAT | os.O_RDWR, 0o666))
print(os.getpid(), flush=True)
signal.pause()
"""
#: Takes what is offered; prints the names of what could be reached. Arguments: process numbers to try.
TAKE = """
import ctypes, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def can(attempt):
    try:
        return attempt() is not False
    except OSError:
        return False
numbers = [int(number) for number in sys.argv[1:]]
mine = lambda pid: b"signal." + b"pause" in open(f"/proc/{pid}/cmdline", "rb").read()
pids = [pid for pid in os.listdir("/proc") if pid.isdigit()]
attempts = {
    "seen": lambda: any(can(lambda: mine(pid)) for pid in pids),
    "environ": lambda: any(can(lambda: mine(pid) and open(f"/proc/{pid}/environ").close()) for pid in numbers),
    "pidfd": lambda: any(can(lambda: mine(pid) and os.close(os.pidfd_open(pid))) for pid in numbers),
    "abstract socket": lambda: socket.socket(socket.AF_UNIX).connect("\\0knobscope-offer"),
    "port": lambda: socket.create_connection(("127.0.0.1", 45917), 2).close(),
    "System V memory": lambda: libc.shmget(0x6B6E, 0, 0) >= 0,
    "semaphores": lambda: libc.semget(0x6B6E, 0, 0) >= 0,
    "message queue": lambda: libc.msgget(0x6B6E, 0) >= 0,
    "POSIX memory": lambda: os.close(os.open("/dev/shm/knobscope-offer", os.O_RDWR)),
    "ptrace": lambda: any(can(lambda: mine(pid) and libc.ptrace(16, pid, 0, 0) == 0) for pid in numbers),
}
print(",".join(name for name, attempt in attempts.items() if can(attempt)))
"""


def test_a_run_reaches_nothing_that_another_run_offers() -> None:
    """Two runs of one user at once; the same attempts succeed in the run that makes the offer."""
    with ExitStack() as stack:
        first, second = ((stack.enter_context(open_network()), stack.enter_context(make_sandbox())) for _ in range(2))
        start = partial(supervise, user=SERVICE_USER, stdout=subprocess.PIPE, cwd="/")
        offer = start(["/usr/bin/python3", "-c", OFFER], network=first[0], sandbox=first[1])
        assert offer.stdout is not None
        inside = int(offer.stdout.readline())
        outside = list(descendants(offer.pid))
        take = ["/usr/bin/python3", "-c", TAKE, *map(str, [inside, *outside])]
        reached = [
            set(capture(start(take, network=network, sandbox=sandbox), 30)[1].strip().split(","))
            for network, sandbox in (first, second)
        ]
        offer.stdout.close()
    offered = {"seen", "environ", "pidfd", "abstract socket", "port", "System V memory", "semaphores"}
    assert reached[0] >= {*offered, "message queue", "POSIX memory"}
    assert reached[1] == {""}


def test_shared_memory_and_temporary_files_belong_to_a_run(runs: tuple[Sandbox, Sandbox]) -> None:
    say(runs[0], "ipcmk -M 4096; for d in /tmp /var/tmp /dev/shm; do echo left >$d/left-by-a-run; done")
    look = "ipcs -m | grep -c 4096; cat /tmp/left-by-a-run /var/tmp/left-by-a-run /dev/shm/left-by-a-run"
    assert say(runs[0], look).split() == ["1", "left", "left", "left"]
    assert "left\n" not in say(runs[1], look)
    assert not Path("/tmp/left-by-a-run").exists()


def test_temporary_files_lie_on_the_file_systems_where_they_lay(runs: tuple[Sandbox, Sandbox]) -> None:
    """A sort that spills must not go to memory, or to another disk."""
    inside = say(runs[0], "stat -c %d /tmp /var/tmp").split()
    assert inside == [str(Path(folder).stat().st_dev) for folder in ("/tmp", "/var/tmp")]


def test_a_command_starts_where_its_run_does_not_see_the_python_of_ours(
    runs: tuple[Sandbox, Sandbox], tmp_path: Path
) -> None:
    """As with a Python below root's home: what the keeper needs of it, it has loaded before that is closed."""
    without = replace(runs[0], covers={Path(os.__file__).parent: tmp_path, **runs[0].covers})
    assert say(without, "echo started") == "started\n"


def test_data_on_a_device_in_memory_is_reached() -> None:
    """Images of emulated devices lie in /dev/shm, and are mounted beside it."""
    with tempfile.TemporaryDirectory(prefix="knobscope-test-", dir="/dev/shm") as folder:
        data = Path(folder, "data")
        data.mkdir()
        shutil.chown(data, SERVICE_USER)
        Path(folder, "other").touch()
        with make_sandbox([data]) as sandbox:
            assert (
                say(sandbox, f"touch {data}/made; ls -A {folder} /dev/shm; touch /dev/shm/own", data).count("other")
                == 0
            )
        assert [path.name for path in data.iterdir()] == ["made"]


def private_directories() -> set[Path]:
    return {path for folder in ("/tmp", "/var/tmp") for path in Path(folder).glob("knobscope-private-*")}


def test_nothing_is_left_of_a_run(open_directory: Path) -> None:
    before = private_directories()
    with make_sandbox() as sandbox:
        keeper, _ = start_sleeper(sandbox)
        inside = list(descendants(keeper.pid))
        new = private_directories() - before  # of this run, and of those of other tests
    assert not any(Path(f"/proc/{pid}").exists() for pid in inside)
    assert keeper.wait(20) == 137
    assert new and wait_until(lambda: not new & private_directories())
    assert keeper.stdout is not None
    keeper.stdout.close()


def test_an_orphan_of_a_killed_keeper_ends_while_its_run_goes_on(runs: tuple[Sandbox, Sandbox]) -> None:
    """In a PID namespace it goes to the first process there, which no other process may kill."""
    keeper, _ = start_sleeper(runs[0])
    inner, command = list(descendants(keeper.pid))[:2]
    os.kill(inner, 9)
    assert keeper.wait(20) == 137
    deadline = time.monotonic() + 20
    while Path(f"/proc/{command}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert say(runs[0], "echo goes on") == "goes on\n"
    assert keeper.stdout is not None
    keeper.stdout.close()


def test_root_makes_no_mount_point_through_a_planted_link(runs: tuple[Sandbox, Sandbox], tmp_path: Path) -> None:
    wanted = Path(tempfile.mkdtemp(prefix="knobscope-test-", dir="/var/tmp"))
    (wanted / "below").mkdir()
    victim = tmp_path / "victim"
    victim.mkdir()
    victim.chmod(0o755)
    say(runs[0], f"ln -s {victim} {wanted}")
    assert "Not a directory" in say(runs[0], "true", wanted / "below")
    assert list(victim.iterdir()) == []
    say(runs[1], f"mkdir {wanted}")
    assert "a program of the run has made" in say(runs[1], "true", wanted / "below")
    shutil.rmtree(wanted)


CLOSED = """
import subprocess
from knobscope.processes import capture, make_sandbox, supervise
with make_sandbox() as sandbox:
    script = "ls -d /proc/[0-9]* | wc -l; ls -A /tmp | wc -l; unshare --user true && echo made"
    print(capture(supervise(["/bin/sh", "-c", script], sandbox=sandbox, stdout=subprocess.PIPE, cwd="/"), 30)[1])
"""


def test_a_machine_without_user_namespaces_gets_the_others() -> None:
    """The limit is set in a user namespace that plays the machine, whose root this is."""
    closing = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"'
    command = ["unshare", "--user", "--map-root-user", "/bin/sh", "-c", closing, "sh", sys.executable, "-c", CLOSED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen, files, *made = done.stdout.split()
    assert int(seen) < 8
    assert files == "0"
    assert made == []


def test_somebody_ordinary_gets_all_but_a_network(open_directory: Path) -> None:
    """Where the system lets users make namespaces; the programs are started as `open_sandbox` does."""
    open_directory.chmod(0o755)
    cover = open_directory / "cover"
    for name in ("first.py", "keeper.py", "view.py"):
        shutil.copy(PROGRAMS / name, open_directory)
        (open_directory / name).chmod(0o644)
    cover.mkdir()
    shutil.chown(cover, "nobody")
    look = "cat /proc/sys/user/max_user_namespaces; ls /tmp | wc -l; ls -d /proc/[0-9]* | wc -l; id -u"
    kinds = ("pid", "ipc", "mnt", "user", "net")
    look += "".join(f"; readlink /proc/self/ns/{kind}" for kind in kinds)
    command = ["runuser", "-u", "nobody", "--", "/usr/bin/python3", "-c", ORDINARY, str(open_directory), str(cover)]
    done = subprocess.run([*command, look], capture_output=True, text=True, check=False, cwd="/")
    if "cannot make namespaces" in done.stderr:
        pytest.skip(f"nobody may make none here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    further, files, seen, user, *namespaces = done.stdout.split()
    assert (further, files, user) == ("0", "0", "65534")
    assert int(seen) < 8
    ours = [str(Path("/proc/self/ns", kind).readlink()) for kind in kinds]
    assert [kind for kind, here, there in zip(kinds, ours, namespaces, strict=True) if here == there] == ["net"]
