"""The system calls that are watched: what each does, which argument is what, and its number on each machine."""

from __future__ import annotations

from dataclasses import dataclass

from kernel import Member, UnavailableError

(_READ, _WRITE, _SYNC, _COPY, _SENDFILE, _SUBMIT, _REAP, _ENTER, _OTHER) = range(9)  # as the enum in the program
_FROM_RETURN = _FROM_POSITION = 0xFF


@dataclass(frozen=True)
class Call:
    """A system call. `descriptor`, `length` and `offset` name arguments from 1 on; 0: there is none.

    A call with a descriptor counts when that is a file. `length` tells what `bytes` are: what the call moved, or the
    range that it names.
    """

    numbers: dict[str, int]  # machine -> number; some machines lack a call
    kind: int
    descriptor: int = 0
    length: int = 0
    offset: int = 0


def number_call(x86_64: int, aarch64: int | None) -> dict[str, int]:
    """Return the numbers of a call by machine; None: the machine has no such call."""
    return {"x86_64": x86_64} | ({} if aarch64 is None else {"aarch64": aarch64})


#: Name -> call. The read, write, sync and thread series, and what else makes a DBMS' I/O.
CALLS: dict[str, Call] = {
    "read": Call(number_call(0, 63), _READ, 1, _FROM_RETURN, _FROM_POSITION),
    "pread64": Call(number_call(17, 67), _READ, 1, _FROM_RETURN, 4),
    "readv": Call(number_call(19, 65), _READ, 1, _FROM_RETURN, _FROM_POSITION),
    "preadv": Call(number_call(295, 69), _READ, 1, _FROM_RETURN, 4),
    "preadv2": Call(number_call(327, 286), _READ, 1, _FROM_RETURN, 4),
    "write": Call(number_call(1, 64), _WRITE, 1, _FROM_RETURN, _FROM_POSITION),
    "pwrite64": Call(number_call(18, 68), _WRITE, 1, _FROM_RETURN, 4),
    "writev": Call(number_call(20, 66), _WRITE, 1, _FROM_RETURN, _FROM_POSITION),
    "pwritev": Call(number_call(296, 70), _WRITE, 1, _FROM_RETURN, 4),
    "pwritev2": Call(number_call(328, 287), _WRITE, 1, _FROM_RETURN, 4),
    "io_submit": Call(number_call(209, 2), _SUBMIT),
    "io_getevents": Call(number_call(208, 4), _REAP),
    "io_pgetevents": Call(number_call(333, 292), _REAP),
    "io_uring_setup": Call(number_call(425, 425), _OTHER),
    "io_uring_enter": Call(number_call(426, 426), _ENTER),
    "fsync": Call(number_call(74, 82), _SYNC, 1),
    "fdatasync": Call(number_call(75, 83), _SYNC, 1),
    "sync_file_range": Call(number_call(277, 84), _SYNC, 1, 3, 2),
    "syncfs": Call(number_call(306, 267), _OTHER),
    "sync": Call(number_call(162, 81), _OTHER),
    "msync": Call(number_call(26, 227), _OTHER, 0, 2),
    "mmap": Call(number_call(9, 222), _OTHER, 5, 2, 6),
    "madvise": Call(number_call(28, 233), _OTHER, 0, 2),
    "fadvise64": Call(number_call(221, 223), _OTHER, 1, 3, 2),
    "readahead": Call(number_call(187, 213), _OTHER, 1, 3, 2),
    "fallocate": Call(number_call(285, 47), _OTHER, 1, 4, 3),
    "truncate": Call(number_call(76, 45), _OTHER),
    "ftruncate": Call(number_call(77, 46), _OTHER, 1),
    "copy_file_range": Call(number_call(326, 285), _COPY, 1, _FROM_RETURN),
    "splice": Call(number_call(275, 76), _COPY, 1, _FROM_RETURN),
    "sendfile": Call(number_call(40, 71), _SENDFILE, 2, _FROM_RETURN),
    "open": Call(number_call(2, None), _OTHER),
    "openat": Call(number_call(257, 56), _OTHER),
    "openat2": Call(number_call(437, 437), _OTHER),
    "fcntl": Call(number_call(72, 25), _OTHER, 1),
    "clone": Call(number_call(56, 220), _OTHER),
    "clone3": Call(number_call(435, 435), _OTHER),
    "fork": Call(number_call(57, None), _OTHER),
    "vfork": Call(number_call(58, None), _OTHER),
}

#: Machine -> members of struct pt_regs: one per argument, or the array that begins with them; and the call's number.
_REGISTERS = {"x86_64": (("di", "si", "dx", "r10", "r8", "r9"), "orig_ax"), "aarch64": (("regs",), "syscallno")}


def list_registers(machine: str) -> tuple[Member, ...]:
    """Return the members of struct pt_regs that hold a system call; UnavailableError for a machine we do not know."""
    if machine not in _REGISTERS:
        raise UnavailableError(f"system calls are known for {', '.join(_REGISTERS)}, this machine is {machine}")
    names, number = _REGISTERS[machine]
    return tuple(Member("pt_regs", name, 0) for name in (*names, number))


def define_registers(machine: str) -> str:
    """Return macros: where struct pt_regs has the arguments of a call, and its number, negative outside of calls."""
    names, number = _REGISTERS[machine]
    fields = [f"pt_regs__{name}" for name in names]
    if len(fields) == 1:
        fields = [f"({fields[0]} + {8 * i})" for i in range(6)]
    lines = [f"#define REGISTER_{i} {field}" for i, field in enumerate(fields)]
    kind = "s64" if number == "orig_ax" else "s32"
    lines += [f"#define CALL_NUMBER pt_regs__{number}", f"#define CALL_NUMBER_TYPE {kind}"]
    return "\n".join(lines) + "\n"
