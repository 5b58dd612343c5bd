"""Logs of programs are read from their ends: what lies between may be as long as a disk allows."""

import subprocess
import sys
from pathlib import Path

import pytest

from knobscope.generators import events
from knobscope.generators.events import Client
from knobscope.generators.failure import GeneratorError
from knobscope.processes import read_log, read_tail

#: Reads the log that it is given, then reports what its memory came to.
_READER = """
import sys
from pathlib import Path
from knobscope.processes import read_tail
def peak_kib():  # unlike ru_maxrss, without what the parent's came to
    return int(next(line for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line).split()[1])
before = peak_kib()
print(read_tail(Path(sys.argv[1]), 2), (peak_kib() - before) >> 10, sep="|")
"""


def write_log(path: Path) -> None:
    """Write a log that is mostly a hole."""
    with path.open("wb") as log:
        log.write(b"first\n")
        log.seek(8 << 30)
        log.write(b"\nlast but one\nlast\n")


def test_the_end_of_a_log_of_8_gib_takes_little_memory(tmp_path: Path) -> None:
    write_log(tmp_path / "log")
    done = subprocess.run(
        [sys.executable, "-c", _READER, str(tmp_path / "log")], capture_output=True, text=True, check=True
    )
    lines, grown_mib = done.stdout.rsplit("|", 1)
    assert lines == "last but one\nlast"
    assert int(grown_mib) < 64
    assert read_log(tmp_path / "log").startswith("first\n")


def test_what_a_client_with_a_log_of_8_gib_said_last_is_reported(tmp_path: Path) -> None:
    log = tmp_path / "log"
    client = Client(["sh", "-c", "exit 1"], log, tmp_path, subprocess.Popen)
    write_log(log)
    with pytest.raises(GeneratorError) as failure:
        client.wait_for("loaded", 30)
    client.stop()
    assert failure.value.log_tail.endswith("\nlast but one\nlast")
    assert len(failure.value.log_tail) <= 1 << 16


def test_a_log_that_was_never_written_is_empty(tmp_path: Path) -> None:
    assert read_tail(tmp_path / "log") == ""


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("while True: print('x' * 65536, end='')", "a line, or events, of more than 1 MiB"),
        ('while True: print(\'@knobscope {"event": "acknowledged"}\')', "a line, or events, of more than 1 MiB"),
        ("print('@knobscope [')", "what is no event: b'@knobscope [\\n'"),
        ("print('@knobscope ' + '[' * 99999)", "what is no event: "),
        ("print('@knobscope {\"event\": []}')", "what is no event: "),
    ],
    ids=["endless-line", "endless-events", "no-json", "deep", "no-name"],
)
def test_a_client_that_prints_nonsense_ends_in_a_sentence(
    printed: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MOST_BYTES", 1 << 20)
    client = Client([sys.executable, "-c", printed], tmp_path / "log", tmp_path, subprocess.Popen)
    try:
        with pytest.raises(GeneratorError) as failure:
            client.wait_for("loaded", 30)
    finally:
        client.stop()
    assert failure.value.kind == "unreadable"
    assert str(failure.value).startswith(f"the load client printed {reason}")
