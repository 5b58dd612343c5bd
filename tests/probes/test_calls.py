"""The table of system calls against the headers of the C library and the type information of the kernel."""

import re
from pathlib import Path

import pytest
from calls import CALLS, define_registers, list_registers
from kernel import UnavailableError
from wait_calls import WAIT_CALLS

from knobscope.watch import sampling

_HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}


@pytest.mark.parametrize("machine", sorted(_HEADERS))
def test_numbers_are_those_of_the_header(machine: str) -> None:
    header = _HEADERS[machine]
    if not header.exists():
        pytest.skip(f"{header} is not installed")
    known = {name: int(number) for name, number in re.findall(r"__NR_?(\w+)\s+(\d+)\n", header.read_text())}
    names = {name: name if name in known else f"3264_{name}" for name in CALLS}
    expected = {name: known[here] for name, here in names.items() if here in known}
    assert {name: call.numbers[machine] for name, call in CALLS.items() if machine in call.numbers} == expected


def test_registers_of_an_unknown_machine() -> None:
    with pytest.raises(UnavailableError, match="x86_64"):
        list_registers("vax")
    assert len(list_registers("x86_64")) == 7
    assert "REGISTER_5" in define_registers("aarch64")


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_looks_without_bpf_know_calls_by_the_same_numbers(machine: str) -> None:
    """The probes run without the package, so numbers of calls stand in both."""
    kinds = ("lock", "network", "timer", "async")  # from 1 on, as the enum of kinds in the program
    expected: dict[str, set[int]] = {kind: set() for kind in kinds}
    for call in WAIT_CALLS.values():
        if machine in call.numbers and 1 <= call.kind <= len(kinds):
            expected[kinds[call.kind - 1]].add(call.numbers[machine])
    known = {reason: set(numbers[machine]) for reason, numbers in sampling._CALLS.items()}
    known["network"] |= known["epoll"]
    assert {kind: known[kind] for kind in kinds} == expected
    counting = (call for call in WAIT_CALLS.values() if call.count_in and machine in call.numbers)
    assert sampling._COUNT_IN[machine] == {call.numbers[machine]: call.count_in for call in counting}
    names = {number: name for name, call in CALLS.items() for number in [call.numbers.get(machine)]}
    assert {names[number] for number in known["read"]} == {"read", "pread64", "readv", "preadv", "preadv2"}
    assert {names[number] for number in known["flush"]} == {
        *("fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync"),
    }
