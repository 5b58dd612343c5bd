"""`knobscope job`: what a command prints is logged, also what its children print, and what it made is sealed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from knobscope.durable_files import DamagedFileError
from knobscope.sealing import check_seal

JOB = [sys.executable, "-m", "knobscope", "job"]


def job(folder: Path, *command: str, seal: str = "out.md") -> subprocess.CompletedProcess[str]:
    options = ["--log", "logs/x.log", "--seal", seal, "--", *command]
    return subprocess.run([*JOB, *options], cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a table that `trend` can judge."""
    rows = [f"{level},{level * 10 + repeat}" for level in (1, 2, 4, 8, 16) for repeat in range(4)]
    (tmp_path / "t.csv").write_text("\n".join(["threads,tps", *rows]) + "\n")
    return tmp_path


TREND = ("trend", "t.csv", "--response", "tps", "--factor", "threads", "--json", "out.json")


def test_a_job_logs_what_it_prints_and_seals_what_it_made(folder: Path) -> None:
    done = job(folder, *TREND, seal="out.json")
    assert done.returncode == 0, done.stderr
    assert (folder / "logs/x.log").read_text() == done.stdout
    assert "threads" in done.stdout
    check_seal(folder / "out.json")
    (folder / "out.json").write_text("{}")
    with pytest.raises(DamagedFileError, match="is not what was written"):
        check_seal(folder / "out.json")


def test_a_job_that_fails_has_its_message_in_the_log_and_no_seal(folder: Path) -> None:
    job(folder, *TREND, seal="out.json")
    done = job(folder, "trend", "none.csv", *TREND[2:], seal="out.json")
    assert done.returncode == 2
    assert "none.csv" in (folder / "logs/x.log").read_text()
    assert not (folder / ".out.json.seal").exists()


def test_a_job_writes_its_log_through_no_link(folder: Path) -> None:
    (folder / "precious").write_text("kept")
    (folder / "logs").mkdir()
    (folder / "logs/x.log").symlink_to("../precious")
    assert job(folder, *TREND, seal="out.json").returncode == 0
    assert (folder / "precious").read_text() == "kept"
    assert "threads" in (folder / "logs/x.log").read_text()


#: A job whose command waits until it is interrupted, and then says so.
WAITING = """
import signal, sys, time
from knobscope import cli, job

signal.signal(signal.SIGINT, signal.default_int_handler)  # which who started the tests may have ignored

def wait(command):
    try:
        print("waiting", flush=True)
        time.sleep(600)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    return 130

arguments = cli.build_parser("job").parse_args(["job", "--log", "x.log", "--", "wait"])
cli.main = wait
sys.exit(arguments.run(arguments))
"""


def test_what_is_said_after_an_interruption_is_logged(folder: Path) -> None:
    """Ctrl-C reaches all processes of a terminal; the one that logs goes on until the others have said all."""
    with subprocess.Popen(
        [sys.executable, "-c", WAITING], cwd=folder, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "waiting\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"
    assert process.returncode == 130
    assert (folder / "x.log").read_text() == "waiting\ninterrupted\n"


#: A job whose command ends before a child that holds its output, as helpers of `multiprocessing` do.
OUTLIVED = """
import subprocess, sys
from knobscope import cli, job

def leave(command):
    print(subprocess.Popen(["sleep", "1000"]).pid, flush=True)
    return 0

arguments = cli.build_parser("job").parse_args(["job", "--log", "x.log", "--", "leave"])
cli.main = leave
sys.exit(arguments.run(arguments))
"""


def test_a_child_that_holds_the_output_does_not_keep_the_job(folder: Path) -> None:
    command = [sys.executable, "-c", OUTLIVED]
    with (folder / "output").open("wb") as output:
        done = subprocess.run(command, cwd=folder, stdout=output, stderr=output, timeout=120, check=False)
    said = (folder / "output").read_text()
    os.kill(int(said), signal.SIGKILL)
    assert (done.returncode, (folder / "x.log").read_text()) == (0, said)


def test_a_full_disk_ends_the_log_and_not_the_job(folder: Path) -> None:
    limited = f"ulimit -f 0; trap '' XFSZ; exec {sys.executable} -m knobscope job --log x.log -- --version"
    done = subprocess.run(["sh", "-c", limited], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("knobscope 0") and "what follows is not logged: File too large" in done.stdout
