"""Compiles each BPF program and, alone, each header of it, with bcc and the facts that the loader gives it.

Run by the system's Python, which has bcc. Prints one JSON object per text: the program that it belongs to, the name of
its file, and the complaints about it. Nothing is loaded, but bcc makes the maps of what it has compiled, which only
root may do: for others the complaints are those of the compiler, which comes first.
"""

import json
import os
import re
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[2] / "probes"))

import compiling  # noqa: E402
import counters  # noqa: E402
import faults  # noqa: E402
import light  # noqa: E402
import program  # noqa: E402
import syscalls  # noqa: E402
import waits  # noqa: E402
from bcc import BPF, lib  # noqa: E402
from disk import Disk, Part  # noqa: E402
from event_trace import read_traced_kernel  # noqa: E402
from kernel import Kernel, UnavailableError, compile_environment, read_kernel  # noqa: E402
from needs import BLOCK_NEEDS  # noqa: E402
from probe import Selection  # noqa: E402
from typed import list_marks  # noqa: E402

Program = tuple[Path, Kernel, Mapping[str, int | str]]  # source, facts, constants
Form = tuple[str, Program]

BROKEN = "static int broken(void) { return not_declared; }\n"


class Asked(Exception):  # noqa: N818 - it is an answer
    """What a probe would have loaded."""


def ask(probe: Callable[[], object]) -> Program:
    """Return what a probe would load."""
    try:
        probe()
    except Asked as asked:
        source, kernel, _, constants, *_ = asked.args
        return source, kernel, {"GROUPS": program.MAX_GROUPS, **constants}
    raise AssertionError("the probe loads no program")


def refuse(*what: object, **_: object) -> None:
    """Stand where a program is loaded."""
    raise Asked(*what)


def list_programs() -> Iterator[Form]:
    """Yield all programs; the block program in each of its forms, with all its parts first."""
    counters.TypedProgram = counters.Program = faults.Program = refuse
    syscalls.TypedProgram = syscalls.Program = refuse
    waits.TypedProgram = waits.Program = light.TypedProgram = light.Program = refuse
    part = Part(Path(), False, 0, 2**64 - 1, 2, 64, Path())
    disk = Disk("4095:1", Path(), (part,), (), Path(), "")
    stack = Disk("4095:2", Path(), (part, part), ("4095:2",), Path(), "")
    forms = (("traced block", read_traced_kernel, disk), ("block", read_kernel, disk), ("stacked", read_kernel, stack))
    for name, read, disk in forms:
        kernel = read(BLOCK_NEEDS)
        source, _, constants = ask(lambda kernel=kernel, disk=disk: counters.Counters(kernel, disk, 4096, "process"))
        yield from list_forms(name, source, kernel, constants)
    kernel = read_kernel(light.LIGHT_NEEDS)
    source, _, constants = ask(lambda: light.LightCounters(kernel, disk, 4096))
    yield from list_forms("light", source, kernel, constants)
    source, kernel, constants = ask(lambda: syscalls.SyscallProbe(Selection()))
    yield from list_forms("syscalls", source, kernel, constants)
    yield "faults", ask(lambda: faults.FaultProbe(Selection()))
    source, kernel, constants = ask(lambda: waits.WaitProbe(Selection()))
    yield from list_forms("waits", source, kernel, constants)
    older = replace(kernel, prelude=re.sub(r"#define ARG_prev_state .*\n", "", kernel.prelude))
    yield "waits before 5.18", (source, older, constants)


def list_forms(name: str, source: Path, kernel: Kernel, constants: Mapping[str, int | str]) -> Iterator[Form]:
    """Yield a program without types, with them, and with them as on a kernel that has no loops of its own."""
    yield name, (source, kernel, constants)
    for form, of in ("typed", kernel), ("typed, before 6.4:", replace(kernel, loop=None)):
        yield f"{form} {name}", (source, of, {**constants, **list_marks(of, tuple(syscalls.PARTS))})


def list_headers(source: Path, known: list[Path]) -> list[Path]:
    """Return all that a source includes, directly or not, each once."""
    for name in re.findall(r'^#include "(.+)"$', source.read_text(), re.MULTILINE):
        header = source.with_name(name)
        if name != program._FACTS and header not in known:
            known.append(header)
            list_headers(header, known)
    return known


def find_closed_loops(code: bytes) -> list[int]:
    """Return the instructions that fall into the head of a loop, which only a jump may close before Linux 6.4."""
    instructions = list(struct.iter_unpack("<BBhi", code))
    ways = [list_ways(number, *instruction) for number, instruction in enumerate(instructions)]
    closing, open_ones, done = [], {0}, set()
    path = [(0, iter(ways[0]))]
    while path:
        number, remaining = path[-1]
        for target, is_jump in remaining:
            if target in open_ones and not is_jump:
                closing.append(number)
            if target not in open_ones | done:
                open_ones.add(target)
                path.append((target, iter(ways[target])))
                break
        else:
            path.pop()
            open_ones.remove(number)
            done.add(number)
    return closing


def list_ways(number: int, opcode: int, _registers: int, offset: int, _immediate: int) -> list[tuple[int, bool]]:
    """Return where an instruction may lead, and whether as a jump, as the verifier counts it."""
    if opcode == 0x18:  # takes two places
        return [(number + 2, False)]
    if opcode & 7 not in (5, 6) or opcode & 0xF0 == 0x80:  # no jump; a call
        return [(number + 1, False)]
    target = (number + 1 + offset, True)
    return {0x90: [], 0x00: [target]}.get(opcode & 0xF0, [(number + 1, True), target])


def compile_text(text: str, kernel: Kernel) -> list[str]:
    """Return the compiler's errors and warnings, loops that older kernels refuse, and bcc's own complaint."""
    failed = []
    with tempfile.TemporaryFile() as said, compile_environment(kernel):
        standard_error = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            module = BPF(text=text, cflags=compiling.FLAGS)
            for number in range(lib.bpf_num_functions(module.module)):
                name = lib.bpf_function_name(module.module, number)
                if loops := find_closed_loops(module.dump_func(name)):
                    failed.append(f"{name.decode()}: instructions {loops} close a loop and are no jumps")
            module.cleanup()
        except Exception as failure:  # noqa: BLE001 - bcc raises nothing narrower
            failed = [str(failure)] if os.geteuid() == 0 else []
        finally:
            os.dup2(standard_error, 2)
            os.close(standard_error)
        said.seek(0)
        lines = said.read().decode(errors="replace").splitlines()
    return [line for line in lines if re.search("(^|: )(error|warning):", line)] + failed


def report(name: str, file: str, complaints: list[str]) -> None:
    print(json.dumps({"program": name, "file": file, "complaints": complaints}), flush=True)


def main() -> None:
    sources: set[Path] = set()
    for name, (source, kernel, constants) in list_programs():
        # The headers once, in the form of the program that comes first.
        for file in [source] if source in sources else [source, *list_headers(source, [])]:
            report(name, file.name, compile_text(program._compose(file, kernel, constants), kernel))
        sources.add(source)
    report("none", "broken", compile_text(kernel.prelude + BROKEN, kernel))


if __name__ == "__main__":
    try:
        main()
    except UnavailableError as reason:
        sys.exit(str(reason))
