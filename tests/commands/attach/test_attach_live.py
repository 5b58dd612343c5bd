"""The screen of attach in a terminal, until Ctrl-C."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from loop_devices import Loop
from servers import ROOT, Started, start_server

pytestmark = pytest.mark.real


@pytest.fixture
def redis(device: Loop) -> Iterator[Started]:
    assert device.mount is not None
    with start_server("redis", device.mount, None) as started:
        yield started


def test_screen_is_refreshed_until_ctrl_c_and_the_last_window_is_judged(redis: Started) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "knobscope", "attach", "--pid", str(redis.pid)]
    environment = {**os.environ, "COLUMNS": "60", "LINES": "60"}
    with subprocess.Popen(command, cwd=ROOT, stdout=theirs, stderr=subprocess.PIPE, env=environment) as process:
        os.close(theirs)
        text = b""
        while text.count(b"\x1b[2J") < 3:
            text += os.read(ours, 65536)
            if text.count(b"\x1b[2J") == 1:
                redis.load()
        process.send_signal(signal.SIGINT)
        while chunk := _read_rest(ours):
            text += chunk
        assert process.wait(60) == 0
    os.close(ours)
    *screens, last = text.split(b"\x1b[2J")
    assert any(b"appendonlydir/" in screen for screen in screens), "the busiest file has its name"
    lines = [line for screen in screens[1:] for line in screen.decode().split("\r\n")]
    assert max(map(len, lines)) <= 60
    assert "MiB/s  mean size" in lines, "what does not fit in a line is on the next"
    assert all(b"Ctrl-C ends" in screen for screen in screens[1:])
    assert b"Ctrl-C ends" in last
    assert b"watched where it is" in last, "in the end stands the whole diagnosis"


def _read_rest(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other side has closed it
        return b""
