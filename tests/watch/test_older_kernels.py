"""The way of kernels before 6.5, tried on this one: both kinds of tracepoints exist here."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from loop_devices import Loop, row_of

pytestmark = [pytest.mark.real, pytest.mark.long]

PROGRAM = Path(__file__).with_name("older_kernel.py")


def watch(loop: Loop, *options: str) -> Any:
    number = f"{loop.block.major}:{loop.block.minor}"
    fio = ["fio", "--name=job", "--output=/dev/null", "--bs=4k", "--rw=randwrite", *options]
    command = ["/usr/bin/python3", "-I", str(PROGRAM), number, *fio]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def test_direct_requests_are_the_submitters(loop: Loop) -> None:
    profile = watch(loop, f"--filename={loop.node}", "--direct=1", "--size=16m", "--ioengine=libaio", "--iodepth=8")
    write = row_of(profile, "write")
    assert (write["requests"], write["own_requests"]) == (4096, 4096)
    assert profile["unattributed_share"] == 0
    assert {row["program"] for row in profile["programs"]} >= {"on_getrq", "on_frontmerge", "on_issue"}


def test_buffered_writes_are_attributed_completely(mounted: Loop) -> None:
    assert mounted.mount is not None
    profile = watch(mounted, f"--filename={mounted.mount / 'older'}", "--size=8m", "--fdatasync=64", "--end_fsync=1")
    write, flush = row_of(profile, "write"), row_of(profile, "flush")
    assert write["own_bytes"] + write["inode_bytes"] >= 8 << 20
    assert write["journal_requests"] > 0
    assert write["preflush"] > 0
    assert flush["requests"] > 0
    assert sum(row["foreign_requests"] for row in profile["io_profile"]) == 0
