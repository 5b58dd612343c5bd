"""Loads a program as the probes do and runs it thrice. Run by the system's Python: counting.py FOLDER DESCRIPTORS.

FOLDER is where programs are kept; so many DESCRIPTORS are opened before, so that those of maps differ.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[2] / "probes"))

import kept  # noqa: E402
from followed import FOLLOWED_MEMBERS, FOLLOWED_TRACEPOINTS  # noqa: E402
from kernel import Needs, read_kernel  # noqa: E402
from program import Program  # noqa: E402

_SOURCE = """
#include "followed.bpf.h"
BPF_ARRAY(unused, u64, 1);
BPF_HASH(counts, u32, u64, 8);
int count(struct bpf_raw_tracepoint_args *ctx)
{
    u32 key = ctx->args[0];
    u64 none = 0, *number = counts.lookup_or_try_init(&key, &none);
    if (number)
        *number += 1;
    return 0;
}
"""


def main() -> None:
    """Print whether bcc was needed, what was counted, and the descriptors of the maps."""
    folder, descriptors = sys.argv[1:]
    kept.FOLDER = folder
    for _ in range(int(descriptors)):
        os.open(os.devnull, os.O_RDONLY)
    kernel = read_kernel(Needs(members=FOLLOWED_MEMBERS, tracepoints=FOLLOWED_TRACEPOINTS, heads={}))
    with tempfile.TemporaryDirectory() as directory:
        probes = Path(kept.__file__).parent
        for header in probes.glob("*.bpf.h"):
            Path(directory, header.name).symlink_to(header)
        source = Path(directory, "counting.bpf.c")
        source.write_text(_SOURCE)
        program = Program(source, kernel, {}, {}, callable_functions=("count",))
    for key in (1, 2, 1):
        program.call("count", key)
    counts = dict(program["counts"].items())
    numbers = [opened.map_fd for opened in program._maps.values()]
    print(json.dumps({"compiled": "bcc" in sys.modules, "counts": counts, "descriptors": numbers}))
    program.close()


if __name__ == "__main__":
    main()
