"""Streams one event per issue and completion of a device through a ring buffer or a perf buffer, and counts them.

Run by the system's Python, which has bcc: per_event.py ring|perf|empty MAJ:MIN. With `empty` the programs do nothing:
what calling them costs. Says `ready`; to every line on stdin it answers with the requests since the last answer, and it
ends with stdin.
"""

import json
import select
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[2] / "probes"))

from bcc import BPF  # noqa: E402
from kernel import Member, Needs, compile_environment, read_kernel  # noqa: E402

_INTERVAL_S = 0.05
_WAYS = {"ring": "", "perf": "#define PERF_BUFFER\n", "empty": "#define EMPTY\n"}
_REQUEST = (
    Member("request", "q", 8),
    Member("request", "cmd_flags", 4),
    Member("request", "__data_len", 4),
    Member("request", "__sector", 8),
)
_NEEDS = Needs(
    members=(
        *_REQUEST,
        Member("request_queue", "disk", 8),
        Member("gendisk", "major", 4),
        Member("gendisk", "first_minor", 4),
    ),
    tracepoints={"block_rq_issue": "request", "block_rq_complete": "request"},
    heads={"request__HEAD": _REQUEST},
)


class Events:
    """The loaded program and the number of events that arrived."""

    def __init__(self, way: str, device: str) -> None:
        major, minor = device.split(":")
        kernel = read_kernel(_NEEDS)
        constants = f"#define MAJOR {major}\n#define MINOR {minor}\n" + _WAYS[way]
        text = kernel.prelude + constants + Path(__file__).with_name("events.bpf.c").read_text()
        with compile_environment(kernel):
            self._bpf = BPF(text=text, cflags=["-Wno-macro-redefined", "-Wno-duplicate-decl-specifier"])
        for name in ("issue", "complete"):
            self._bpf.load_func(f"on_{name}", BPF.RAW_TRACEPOINT)
            self._bpf.attach_raw_tracepoint(tp=f"block_rq_{name}", fn_name=f"on_{name}")
        self._count = 0
        self._is_perf = way == "perf"
        if self._is_perf:
            self._bpf["events"].open_perf_buffer(self._take, page_cnt=256)
        else:
            self._bpf["events"].open_ring_buffer(self._take)

    def _take(self, *_: object) -> None:
        self._count += 1

    def drain(self, seconds: float) -> None:
        """Take what has arrived; a perf buffer wakes us up for it, a ring buffer is looked at from time to time."""
        if self._is_perf:
            self._bpf.perf_buffer_poll(timeout=int(seconds * 1000))
        else:
            self._bpf.ring_buffer_consume()

    def read(self) -> int:
        """Return the requests since the last call."""
        self.drain(0)
        count, self._count = self._count, 0
        return count // 2


def main() -> None:
    """Stream until stdin ends."""
    events = Events(*sys.argv[1:])
    print("ready", flush=True)
    while True:
        is_perf_waiting = 0 if events._is_perf else _INTERVAL_S
        ready, _, _ = select.select([sys.stdin], [], [], is_perf_waiting)
        if not ready:
            events.drain(_INTERVAL_S)
        elif sys.stdin.readline():
            print(json.dumps({"requests": events.read()}), flush=True)
        else:
            return


if __name__ == "__main__":
    main()
