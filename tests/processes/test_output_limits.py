"""What a command writes is read up to a limit; whoever writes more, or takes too long, is ended."""

import subprocess
import sys
from pathlib import Path

import pytest

from knobscope.processes import OutputLimitError, capture, read_output, supervise

BOTH = "import sys; sys.stdout.write('out' * 1000); sys.stderr.write('error'); sys.exit(3)"


def start(*command: str) -> "subprocess.Popen[bytes]":
    return supervise(list(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def read_peak_kib(*, resets: bool = False) -> int:
    """Return the largest memory of this process, of its whole life or since the last reset."""
    if resets:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM")).split()[1])


def test_both_outputs_and_the_exit_code_come_through() -> None:
    assert capture(start(sys.executable, "-c", BOTH), 20) == (3, "out" * 1000, "error")


def test_a_command_without_an_end_of_its_output_is_ended_at_the_limit() -> None:
    process = start("/usr/bin/yes")
    before = read_peak_kib(resets=True)
    with pytest.raises(OutputLimitError, match="wrote more than 2 MiB of output and was ended"):
        capture(process, 60, 2 << 20)
    assert process.returncode  # by the signal, or by the closed pipe, whichever it saw first
    assert read_peak_kib() - before < 32 << 10


def test_the_limit_is_one_for_both_pipes() -> None:
    with pytest.raises(OutputLimitError):
        capture(start(sys.executable, "-c", BOTH), 20, 3004)
    assert capture(start(sys.executable, "-c", BOTH), 20, 3005)[0] == 3


@pytest.mark.parametrize(
    "code", ["import time; time.sleep(60)", "import os, time; os.closerange(1, 3); time.sleep(60)"]
)
def test_a_command_that_takes_too_long_is_ended_whether_or_not_its_pipes_are_open(code: str) -> None:
    process = start(sys.executable, "-c", code)
    with pytest.raises(subprocess.TimeoutExpired):
        capture(process, 1)
    assert process.returncode == 137


def test_who_reads_on_the_way_gets_chunks_as_they_come_and_may_stop() -> None:
    process = start(sys.executable, "-c", "import os, time\nos.write(1, b'first\\n')\ntime.sleep(60)")
    for pipe, chunk in read_output(process, 100):
        assert pipe is process.stdout
        assert chunk == b"first\n"
        break
    assert process.wait(20) == 137


def test_a_slow_writer_is_read_to_its_end() -> None:
    code = "import time\nfor n in range(3): print(n, flush=True); time.sleep(0.1)"
    assert capture(start(sys.executable, "-c", code), 20)[1] == "0\n1\n2\n"
