"""What other programs took of the processors: all of theirs, and none of ours."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from knobscope.watch import other_programs
from knobscope.watch.other_programs import OtherPrograms, describe_others, sum_shares

SPIN = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass"
#: Waits for a line, spins in a child if there is an argument, says so, and stays.
PROGRAM = f"""
import subprocess, sys
input()
subprocess.run([sys.executable, "-c", {SPIN!r}]) if sys.argv[1:] else exec({SPIN!r})
print(flush=True)
input()
"""


@pytest.fixture
def programs() -> Iterator[list["subprocess.Popen[bytes]"]]:
    """One that works itself, and one whose child works and ends."""
    pipe = subprocess.PIPE
    commands = ([sys.executable, "-c", PROGRAM, *more] for more in ([], ["child"]))
    started = [subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0) for command in commands]
    yield started
    for program in started:
        program.kill()
        program.communicate()


def let_work(programs: list["subprocess.Popen[bytes]"]) -> None:
    for program in programs:
        assert program.stdin and program.stdout
        program.stdin.write(b"\n")
        program.stdout.readline()


@pytest.mark.parametrize("which", [0, 1])
def test_work_of_others_counts_and_our_own_does_not(programs: list["subprocess.Popen[bytes]"], which: int) -> None:
    own, begin = [programs[1 - which].pid], time.monotonic()
    meter, of_nobody, ours = OtherPrograms(own), OtherPrograms([]), OtherPrograms([os.getpid()])
    let_work(programs)
    all_cores_s = (time.monotonic() - begin) * (os.cpu_count() or 1)
    name = Path(sys.executable).name[:15]
    shares = [{row["name"]: row["cpu_share"] for row in one.list_shares()} for one in (meter, of_nobody, ours)]
    seconds = [all_cores_s * share.get(name, 0.0) for share in shares]
    assert seconds[0] > 0.3
    assert seconds[1] - seconds[0] > 0.3
    assert seconds[1] - seconds[2] > 0.6


def test_what_a_process_had_taken_before_is_not_its_parents(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler that began earlier, and its assembler, end within the window: make has the time of both now."""
    process = other_programs._Process
    begin = {(1, 0): process("init", 0, 50, 90), (7, 1): process("make", 1, 5, 10)}
    begin |= {(8, 2): process("cc", 7, 300, 0), (9, 3): process("as", 8, 40, 0)}
    end = {(1, 0): process("init", 0, 50, 90), (7, 1): process("make", 1, 6, 10 + 310 + 45)}
    moments = iter([begin, end])
    ticks = iter([[0, 0, 0, 0, 0, 0, 0, 0], [16, 0, 0, 80, 0, 0, 0, 4]])
    monkeypatch.setattr(other_programs, "_read_processes", lambda: next(moments))
    monkeypatch.setattr(other_programs, "read_ticks", lambda: next(ticks))
    shares = OtherPrograms([]).list_shares()
    assert shares == [{"name": "make", "cpu_share": 0.16}, {"name": "(the host)", "cpu_share": 0.04}]
    assert sum_shares(shares) == pytest.approx(0.2)
    assert describe_others(shares) == "make 16 % and (the host) 4 %"
