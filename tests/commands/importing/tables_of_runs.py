"""Small tables of runs, and what the import says of them."""

from collections.abc import Callable

import pytest

HEADER = "block,dbms,device,tier,workload,knob,value,repeat,throughput_ops"
#: The default of each knob, which a table has to say unless a spec of the DBMS does.
BASELINES = {"Cache": "16", "mode": "slow", "delay": "10"}
GOOD = [
    "1,mydb,disk,hdd,load,,,,100",
    "1,mydb,disk,hdd,load,Cache,8,0,101",
    "1,mydb,disk,hdd,load,Cache,64,0,205",
    "1,mydb,disk,hdd,load,,,,99",
    "2,mydb,disk,hdd,load,Cache,8,1,104",
    "2,mydb,disk,hdd,load,,,,102",
    "2,mydb,disk,hdd,load,Cache,64,1,210",
]

Import = Callable[..., int]
Refuse = Callable[..., list[str]]


def problems(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the problems that the import printed, a line each."""
    first, *lines = capsys.readouterr().err.strip().splitlines()
    assert first == f"knobscope: {len(lines)} problem{'s' if len(lines) > 1 else ''} in the table"
    return lines
