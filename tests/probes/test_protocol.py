"""What the monitor answers to nonsense, and on machines where it cannot work."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.real

MONITOR = Path(__file__).parents[2] / "probes" / "monitor.py"


def talk(python: str, *lines: str, device: str, user: str | None = None, **options: str) -> tuple[int, list[Any], str]:
    """Send lines to a monitor; return its exit code, its answers and its stderr."""
    command = [python, "-I", str(MONITOR), "--device", device, "--unit", options.get("unit", "4096")]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SUDO_")} | options
    done = subprocess.run(
        command,
        input="".join(lines),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        user=user,
        env=environment,
    )
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.mark.parametrize(("without", "is_first"), [([], True), (["--bounding-set", "-sys_nice"], False)])
def test_counting_begins_before_all_that_waits_for_a_processor(
    system_python: str, without: list[str], is_first: bool
) -> None:
    """Where a container lets nobody go first, it begins in its turn."""
    if os.geteuid() != 0:
        pytest.skip("a real-time priority needs root")
    code = (
        f"import os, sys; sys.path.append({str(MONITOR.parent)!r}); import monitor\n"
        "with monitor._before_others():\n    inside = os.sched_getscheduler(0)\n"
        "print(inside == os.SCHED_RR, os.sched_getscheduler(0) == os.SCHED_OTHER)"
    )
    command = [*(["setpriv", *without] if without else []), system_python, "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == [str(is_first), "True"], done.stderr


def test_nonsense_is_answered_and_survived(system_python: str, device: str) -> None:
    nonsense = ["bogus\n", "\n", "follow\n", "follow 1 x\n", "follow -1\n", "follow 0\n", "begin now\n", "end\n"]
    nonsense += ["a" * 200_000 + "\n", "follow 99999999999999999999\n", "\x00\xff\n"]
    code, answers, stderr = talk(system_python, *nonsense, "begin\n", "end\n", device=device)
    assert code == 0, stderr
    assert answers[0]["event"] == "ready"
    assert answers[0]["device"] == device
    assert [answer["event"] for answer in answers[-2:]] == ["begun", "profile"]
    errors = answers[1:-2]
    assert len(errors) >= len(nonsense)
    assert all(answer["event"] == "error" and answer["reason"] for answer in errors)


def test_it_makes_no_files_where_its_caller_stands(system_python: str, device: str, tmp_path: Path) -> None:
    """With /tmp and /var/tmp full, Python makes temporary files there, such as the headers that root compiles."""
    command = [system_python, "-I", str(MONITOR), "--device", device, "--unit", "4096"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=tmp_path) as monitor:
        assert monitor.stdout is not None
        assert json.loads(monitor.stdout.readline())["event"] == "ready"
        assert Path(f"/proc/{monitor.pid}/cwd").readlink() == Path("/")
        monitor.communicate(b"")


def test_programs_are_typed_where_the_kernel_can(system_python: str, device: str) -> None:
    """Where it cannot, they cost more; the monitor says why."""
    version = tuple(int(number) for number in os.uname().release.split("-")[0].split(".")[:2])
    _, answers, _ = talk(system_python, device=device)
    assert answers[0]["event"] == "ready"
    slow = [limit for limit in answers[0]["limits"] if "twice as much" in limit]
    assert not slow or version < (6, 2), slow


def test_only_processes_of_the_caller_are_followed(system_python: str, device: str) -> None:
    """Called through sudo by another user, our own process is none of his business."""
    code, answers, _ = talk(system_python, f"follow {os.getpid()}\n", device=device, SUDO_UID="65534")
    assert code == 0
    assert "does not belong to user 65534" in answers[1]["reason"]
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    assert not any("knobscope-" in line for line in lines)


def test_process_scope_needs_processes(system_python: str, device: str) -> None:
    command = [system_python, "-I", str(MONITOR), "--device", device, "--unit", "512", "--scope", "process"]
    done = subprocess.run(command, input="begin\n", capture_output=True, text=True, check=True)
    assert "needs processes" in json.loads(done.stdout.splitlines()[1])["reason"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"python": sys.executable, "unit": "3584"}, "no bcc"),  # a unit that no program was compiled for
        ({"device": "4095:77"}, "no block device 4095:77"),
    ],
    ids=["no-bcc", "no-device"],
)
def test_unavailable_says_why(system_python: str, device: str, arguments: dict[str, str], reason: str) -> None:
    code, answers, _ = talk(**{"python": system_python, "device": device, **arguments})  # type: ignore[arg-type]
    assert code == 3
    assert [answer["event"] for answer in answers] == ["unavailable"]
    assert reason in answers[0]["reason"]


def test_unavailable_without_root(system_python: str, device: str, open_directory: Path) -> None:
    open_directory.chmod(0o755)
    shutil.copytree(MONITOR.parent, open_directory / "probes", ignore=shutil.ignore_patterns("__pycache__"))
    command = [system_python, "-I", str(open_directory / "probes/monitor.py"), "--device", device, "--unit", "4096"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, user="nobody", check=False)
    assert done.returncode == 3
    assert "need root" in json.loads(done.stdout)["reason"]


@pytest.mark.parametrize(
    "uid", ["x", "1000\n", *(pytest.param(uid, marks=pytest.mark.long) for uid in ("-1", "", "1e3"))]
)
def test_a_strange_caller_is_refused(system_python: str, device: str, uid: str) -> None:
    """It is neither root nor a user: whose processes may be followed is not known."""
    code, answers, stderr = talk(system_python, f"follow {os.getpid()}\n", device=device, SUDO_UID=uid)
    assert code == 3, stderr
    assert [answer["event"] for answer in answers] == ["unavailable"]
    assert f"SUDO_UID: found {uid!r}; expected" in answers[0]["reason"]


@pytest.mark.parametrize(("name", "value"), [("device", "../etc"), ("unit", "0")])
def test_wrong_options_are_refused(system_python: str, device: str, name: str, value: str) -> None:
    code, answers, stderr = talk(system_python, **{"device": device, name: value})  # type: ignore[arg-type]
    assert (code, answers) == (2, [])
    assert f"--{name}: expected" in stderr


#: `KNOBSCOPE_FUZZED_LINES=10000` is the long form.
FUZZED = int(os.environ.get("KNOBSCOPE_FUZZED_LINES", "1000"))
#: Runs a command where files can be written in $TMPDIR only, beside what the kernel shows as files; lists what stays.
READ_ONLY = r"""
set -e
while read -r _ point type _; do
    case $type in
    cgroup | cgroup2 | proc | sysfs | tracefs | debugfs | bpf | devpts | mqueue) ;;
    *) mount -o remount,ro,bind "$(printf %b "$point")" ;;
    esac
done < /proc/mounts
mount -t tmpfs none "$TMPDIR"
if touch /var/tmp/knobscope-test 2>/dev/null; then echo "this can be written" >&2; fi
"$@"
ls -A "$TMPDIR" >&2
"""


def test_fuzzed_lines_get_an_answer_and_write_nothing(system_python: str, device: str, tmp_path: Path) -> None:
    rng = random.Random(20261122)
    words = ["follow", "begin", "end", "0", "1", "-1", str(os.getpid()), "99999999999", "/etc/passwd", "../.."]
    words += ["\x00", "é", "a" * 70_000, "follow 2 3", "--trace", "$(id)", "'", '"', "\r", "\t", "\udcff"]
    lines = [" ".join(rng.choices(rng.choice([words[:7], words]), k=rng.randrange(5))) for _ in range(FUZZED)]
    lines = [line if len(line) < 1000 or rng.random() < 0.05 else "end" for line in lines]
    done = subprocess.run(
        [
            *("unshare", "--mount", "--propagation", "private", "sh", "-c", READ_ONLY, "sh"),
            *(system_python, "-I", str(MONITOR), "--device", device, "--unit", "4096"),
        ],
        input="".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"),
        capture_output=True,
        timeout=300,
        check=False,
        env={"PATH": os.environ["PATH"], "SUDO_UID": "65534", "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == b""
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) >= FUZZED
    assert {answer["event"] for answer in answers} <= {"ready", "error", "begun", "profile"}  # nobody's are followed


@pytest.mark.parametrize(("caller", "named"), [("0", True), ("65534", False)])
def test_files_are_named_to_root_only(
    system_python: str, device: str, open_directory: Path, caller: str, named: bool
) -> None:
    """Names in a directory that the caller may not enter stay there; inodes are told."""
    closed = open_directory / "closed"
    closed.mkdir(mode=0o700)
    major_minor = f"{os.major(closed.stat().st_dev)}:{os.minor(closed.stat().st_dev)}"
    if not Path("/sys/dev/block", major_minor).exists():
        pytest.skip("the directory lies on no block device")
    monitor = subprocess.Popen(
        [system_python, "-I", str(MONITOR), "--device", major_minor, "--unit", "4096"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PATH": os.environ["PATH"], "SUDO_UID": caller},
    )
    assert monitor.stdin is not None
    assert monitor.stdout is not None
    try:
        assert json.loads(monitor.stdout.readline())["event"] == "ready"
        print("begin", file=monitor.stdin, flush=True)
        assert json.loads(monitor.stdout.readline())["event"] == "begun"
        with (closed / "a-secret-name").open("wb") as file:
            file.write(bytes(1 << 20))
            os.fsync(file.fileno())
            inode = os.fstat(file.fileno()).st_ino
        print("end", file=monitor.stdin, flush=True)
        rows = [row for row in json.loads(monitor.stdout.readline())["files"] if row["inode"] == inode]
    finally:
        monitor.stdin.close()
        monitor.wait(120)
        monitor.stdout.close()
        shutil.rmtree(closed)
    assert rows != []
    assert {row["name"] for row in rows} == {"a-secret-name" if named else f"inode {inode}"}
