"""Loads the programs of system calls, waits and requests as kernels of an age can, and tells what each check took.

Run by the system's Python, as root, with a form of `FORMS`. Prints one JSON object per program: name, and how many
instructions the verifier followed (0: a kernel before 5.16 does not tell). Nothing where this kernel is older.
"""

import json
import struct
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[2] / "probes"))

import syscalls  # noqa: E402
import waits  # noqa: E402
from bpf import read_info  # noqa: E402
from counters import Counters  # noqa: E402
from disk import Disk, Part  # noqa: E402
from kernel import Kernel, UnavailableError, read_kernel  # noqa: E402
from needs import BLOCK_NEEDS  # noqa: E402
from probe import Selection  # noqa: E402
from program import Program  # noqa: E402

_VERIFIED = 216  # offset of the number of instructions in struct bpf_prog_info
_DISK = Disk("4095:1", Path(), (Part(Path(), False, 0, 2**64 - 1, 1, 64, Path()),), (), Path(), "")
#: Form -> what a kernel of that age lacks; `stacked`: of this age, with all modules that stack devices.
FORMS = {"typed": {}, "typed, before 6.4": {"loop": None}, "untyped": {"cast": 0}, "stacked": {}}


def load(form: str) -> Iterator[Program]:
    """Yield the loaded programs, and let go of each one after that."""

    def read(needs: object) -> Kernel:
        return replace(read_kernel(needs), **FORMS[form])

    syscalls.read_kernel = waits.read_kernel = read
    for probe in (syscalls.SyscallProbe, waits.WaitProbe):
        with closing(probe(Selection())) as loaded:
            yield loaded._program
    kernel, disk = read(BLOCK_NEEDS), _DISK
    if form == "stacked":
        kernel, disk = replace(kernel, prelude=kernel.prelude + stack(kernel)), replace(_DISK, uppers=("253:0",))
    with closing(Counters(kernel, disk, 4096, "device")) as loaded:
        yield loaded._program


def stack(kernel: Kernel) -> str:
    """Return what a kernel with all modules that stack devices would say; offsets and addresses are made up."""
    absent = [member.name for member in BLOCK_NEEDS.members if f"#define HAVE_{member.name} " not in kernel.prelude]
    lines = [f"#define {name} {8 * number}\n#define HAVE_{name} 1" for number, name in enumerate(absent, 3)]
    symbols = [name for name in BLOCK_NEEDS.symbols if f"#define AT_{name} " not in kernel.prelude]
    lines += [f"#define AT_{name} {2**40 + number}ULL" for number, name in enumerate(symbols)]
    return "\n".join([*lines, "#define r5dev__END 200", ""])


def main(form: str) -> None:
    """Load all in one form, where this kernel can."""
    for program in load(form) if read_kernel(BLOCK_NEEDS).loop else ():
        for name, descriptor in program._descriptors.items():
            (instructions,) = struct.unpack_from("<I", read_info(descriptor), _VERIFIED)
            row = {"is_typed": type(program) is not Program, "name": name}
            print(json.dumps({**row, "instructions": instructions}), flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except UnavailableError as reason:
        sys.exit(str(reason))
