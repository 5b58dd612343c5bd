"""Nothing that was started outlives its starter, however that one ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import PATIENCE_S, wait_until

from knobscope.processes import PIPELINE_VARIABLE, supervise

# A command that double-forks a grandchild into a session of its own, as daemons do, and writes all pids down.
FAMILY = """
import os, sys, time
out = open(sys.argv[1], "a", buffering=1)
print(os.getpid(), file=out)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), file=out)
        time.sleep(600)
    os._exit(0)
time.sleep(600)
"""


def wait_for_pids(path: Path) -> list[int]:
    assert wait_until(lambda: path.exists() and len(path.read_text().splitlines()) == 2)
    return [int(line) for line in path.read_text().split()]


def wait_gone(pids: list[int]) -> list[int]:
    """Return the pids that still run when all had time to end."""
    wait_until(lambda: not any(map(is_running, pids)))
    return [pid for pid in pids if is_running(pid)]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_exit_code_of_the_command_comes_through() -> None:
    assert supervise([sys.executable, "-c", "raise SystemExit(7)"]).wait(PATIENCE_S) == 7


def test_variables_reach_the_command_and_not_its_keeper(tmp_path: Path) -> None:
    """The keeper may be root, and a spec's LD_PRELOAD would be code that runs as root."""
    told = tmp_path / "told"
    command = [
        sys.executable,
        "-c",
        "import os, sys; print(os.environ['LD_AUDIT'], os.environ['LANG'], flush=True); sys.stdin.read()",
    ]
    variables = {**os.environ, "LD_AUDIT": str(tmp_path / "none.so"), "LANG": "C.UTF-8"}
    with told.open("w") as output:
        keeper = supervise(command, env=variables, stdin=subprocess.PIPE, stdout=output, stderr=subprocess.DEVNULL)
    assert keeper.stdin is not None
    assert wait_until(lambda: told.read_text().endswith("\n"))
    own = Path(f"/proc/{keeper.pid}/environ").read_bytes().split(b"\0")
    inner = Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text().split()
    own += Path(f"/proc/{inner[0]}/environ").read_bytes().split(b"\0")
    assert not any(variable.startswith(b"LD_AUDIT=") for variable in own)
    keeper.stdin.close()
    assert keeper.wait(PATIENCE_S) == 0
    assert told.read_text() == f"{tmp_path / 'none.so'} C.UTF-8\n"


def test_a_missing_program_is_exit_code_127(tmp_path: Path) -> None:
    process = supervise([str(tmp_path / "nothing")], stderr=subprocess.PIPE)
    _, words = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 127
    assert b"cannot run" in words


def test_a_script_without_its_interpreter_names_it(tmp_path: Path) -> None:
    script = tmp_path / "benchmark"
    script.write_text("#!/nowhere/python3\n")
    script.chmod(0o755)
    process = supervise([str(script)], stderr=subprocess.PIPE)
    _, words = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 127
    assert b"benchmark, a script for /nowhere/python3: " in words


def test_a_daemon_ends_with_the_command(tmp_path: Path) -> None:
    process = supervise([sys.executable, "-c", FAMILY, str(tmp_path / "pids")])
    pids = wait_for_pids(tmp_path / "pids")
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert wait_gone(pids) == []


def test_usr1_kills_everything(tmp_path: Path) -> None:
    process = supervise([sys.executable, "-c", FAMILY, str(tmp_path / "pids")])
    pids = wait_for_pids(tmp_path / "pids")
    process.send_signal(signal.SIGUSR1)
    assert process.wait(PATIENCE_S) == 137
    assert wait_gone(pids) == []


@pytest.mark.slow
def test_the_end_signal_comes_before_the_kill(tmp_path: Path) -> None:
    code = (
        "import pathlib, signal, sys, time\n"
        "def tidy(*_): pathlib.Path(sys.argv[1]).write_text('tidied'); time.sleep(600)\n"
        "signal.signal(signal.SIGQUIT, tidy); pathlib.Path(sys.argv[2]).touch(); time.sleep(600)"
    )
    process = supervise(
        [sys.executable, "-c", code, str(tmp_path / "tidied"), str(tmp_path / "ready")], end_signal="QUIT"
    )
    assert wait_until((tmp_path / "ready").exists)
    process.send_signal(signal.SIGUSR1)
    assert process.wait(PATIENCE_S) == 137  # killed all the same, when it takes too long
    assert (tmp_path / "tidied").read_text() == "tidied"


@pytest.mark.parametrize("victim", ["starter", "keeper", "inner keeper"])
def test_kill_9_of_starter_or_keeper_leaves_no_command(tmp_path: Path, victim: str) -> None:
    code = (
        "import sys, time; from knobscope.processes import supervise\n"
        f"p = supervise([sys.executable, '-c', {FAMILY!r}, {str(tmp_path / 'pids')!r}])\n"
        "print(p.pid, flush=True); time.sleep(600)"
    )
    starter = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert starter.stdout is not None
    keeper = int(starter.stdout.readline())
    pids = wait_for_pids(tmp_path / "pids")
    inner = int(Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()[0])
    try:
        killed = {"starter": starter.pid, "keeper": keeper, "inner keeper": inner}[victim]
        os.kill(killed, signal.SIGKILL)
        assert wait_gone([*pids, keeper, inner]) == []
    finally:
        starter.kill()
        starter.wait()
        starter.stdout.close()
        for pid in pids:
            if is_running(pid):
                os.kill(pid, signal.SIGKILL)


def test_a_job_ends_with_the_pipeline_that_was_killed(tmp_path: Path) -> None:
    pipeline = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    code = (
        "import sys, time; from knobscope.processes import follow_pipeline, supervise; follow_pipeline()\n"
        f"supervise([sys.executable, '-c', {FAMILY!r}, {str(tmp_path / 'pids')!r}]); time.sleep(600)"
    )
    job = subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, PIPELINE_VARIABLE: str(pipeline.pid)},
        start_new_session=True,
    )
    pids = wait_for_pids(tmp_path / "pids")
    pipeline.kill()
    pipeline.wait()
    assert job.wait(PATIENCE_S) == 137
    assert wait_gone(pids) == []
