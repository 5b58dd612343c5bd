"""Drives the real BPF programs with made-up requests: states that no device of a test machine can be brought into.

Run by the system's Python, which has bcc. A request is laid out in the value of a BPF map, by the running kernel's own
offsets; the kernel runs the programs on its address (BPF_PROG_TEST_RUN). Prints one JSON object per scenario.
"""

import contextlib
import ctypes
import json
import os
import platform
import re
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.append(str(Path(__file__).resolve().parents[2] / "probes"))

from bcc import BPF, lib  # noqa: E402
from block_profile import summarise_run  # noqa: E402
from counters import Counters  # noqa: E402
from disk import Disk, Part  # noqa: E402
from kernel import compile_environment, read_kernel  # noqa: E402
from light import LIGHT_NEEDS, LightCounters, LightReading, summarise_light  # noqa: E402
from needs import BLOCK_NEEDS  # noqa: E402
from origins import FILE_CONSTANTS  # noqa: E402

_BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
_PROG_TEST_RUN = 10
# Offsets in the memory of a scenario.
_DISK, _QUEUE, _HARDWARE, _REQUEST, _BIO, _HOLDER, _CALL, _IOCB, _FILE, _INODE = (
    *(0, 64, 2048, 8192, 9216, 9728, 10240, 10496, 10752, 11264),
)
_SIZE = 16384
_MEMORY = """
struct memory_t { char bytes[%d]; };
BPF_ARRAY(memory, struct memory_t, 1);
BPF_ARRAY(address, u64, 1);
int find(struct bpf_raw_tracepoint_args *ctx)
{
    int zero = 0;
    u64 begin = (u64)memory.lookup(&zero);
    address.update(&zero, &begin);
    return 0;
}
"""


class Machine:
    """A made-up disk (4095:1) with hardware queues, and memory that its requests lie in."""

    def __init__(self, queues: int, scope: str, directory: Path, *, is_light: bool = False) -> None:
        members = tuple(dict.fromkeys((*BLOCK_NEEDS.members, *LIGHT_NEEDS.members)))
        kernel = read_kernel(replace(LIGHT_NEEDS, members=members) if is_light else BLOCK_NEEDS)
        self.kernel = replace(kernel, cast=0)  # the kernel runs typed programs on events only
        self._in_flight = directory / "inflight"
        self.set_idle(False)
        self._stat = directory / "stat"
        self.set_completed(0, 0, 0)
        self.has_times = False
        part = Part(directory, False, 0, 2**64 - 1, queues, 64, directory / "stat")
        disk = Disk("4095:1", directory, (part,), (), Path(), "")
        with compile_environment(self.kernel):
            self._memory = BPF(text=self.kernel.prelude + _MEMORY % _SIZE, cflags=["-Wno-macro-redefined"])
            run_program(self._memory.load_func("find", BPF.RAW_TRACEPOINT).fd, 0)
        self._address = self._memory["address"][ctypes.c_int(0)].value
        self._bytes = bytearray(_SIZE)
        self.counters = LightCounters(self.kernel, disk, 4096) if is_light else Counters(self.kernel, disk, 4096, scope)
        self._scope = scope
        self._write(_DISK, "gendisk__disk_name", "<32s", directory.name.encode())
        self._write(_QUEUE, "request_queue__disk", "<Q", self._address + _DISK)

    def set_idle(self, is_idle: bool) -> None:
        """Let sysfs say that nothing is in flight, or that something may be."""
        self._in_flight.write_text(f"       0 {int(not is_idle):8}\n")

    def set_completed(self, reads: int, writes: int, discards: int) -> None:
        """Let sysfs say how many requests have completed."""
        self._stat.write_text(f"{reads} 0 0 0 {writes} 0 0 0 0 0 0 {discards} 0 0 0 0 0\n")

    def offset(self, name: str) -> int:
        found = re.search(rf"^#define {name} (0x[0-9a-f]+|\d+)(ULL)?$", self.kernel.prelude, re.MULTILINE)
        assert found, name
        return int(found[1], 0)

    def _write(self, begin: int, member: str, form: str, value: int) -> None:
        struct.pack_into(form, self._bytes, begin + self.offset(member), value)

    def open(self, inode: int, generation: int = 1) -> None:
        """Let the next requests be direct I/O of a file, until `close`."""
        self._write(_REQUEST, "request__bio", "<Q", self._address + _BIO)
        self._write(_BIO, "bio__bi_bdev", "<Q", self._address + _HOLDER)
        self._write(_HOLDER, "block_device__bd_holder", "<Q", 1)
        self._write(_BIO, "bio__bi_end_io", "<Q", self.offset("AT_iomap_dio_bio_end_io"))
        self._write(_BIO, "bio__bi_private", "<Q", self._address + _CALL)
        self._write(_CALL, "iomap_dio__iocb", "<Q", self._address + _IOCB)
        self._write(_IOCB, "kiocb__ki_filp", "<Q", self._address + _FILE)
        self._write(_FILE, "file__f_inode", "<Q", self._address + _INODE)
        self._write(_INODE, "inode__i_ino", "<Q", inode)
        self._write(_INODE, "inode__i_generation", "<I", generation)

    def close(self) -> None:
        """Let the next requests be nobody's."""
        self._write(_REQUEST, "request__bio", "<Q", 0)

    def do(self, sector: int, *events: str) -> None:
        """One request of 4 KiB through all its events."""
        self.request(sector=sector)
        for name in events or ("start", "issue"):
            self.event(name)
        self.event("complete", finished=4096)

    def request(
        self, op: str = "REQ_OP_WRITE", tag: int = 1, sector: int = 8, size: int = 4096, queue: int = 0
    ) -> None:
        """Lay out the request that the next events are about."""
        hardware = _HARDWARE + 512 * queue
        self._write(hardware, "blk_mq_hw_ctx__queue_num", "<I", queue)
        made_ns = time.monotonic_ns() if self.has_times else 0
        for member, form, value in (
            ("start_time_ns", "<Q", made_ns),
            ("q", "<Q", self._address + _QUEUE),
            ("mq_hctx", "<Q", self._address + hardware),
            ("cmd_flags", "<I", self.offset(op)),
            ("tag", "<i", tag),
            ("internal_tag", "<i", -1),
            ("data_len", "<I", size),
            ("sector", "<Q", sector),
        ):
            self._write(_REQUEST, f"request__{member}", form, value)
        leaf = self._memory["memory"].Leaf.from_buffer_copy(self._bytes)
        zero = ctypes.c_int(0)
        assert lib.bpf_update_elem(self._memory["memory"].map_fd, ctypes.byref(zero), ctypes.byref(leaf), 0) == 0

    def event(self, name: str, error: int = 0, finished: int = 0) -> None:
        """Run one program on the request."""
        run_program(self.counters._program._descriptors[f"on_{name}"], self._address + _REQUEST, error, finished)

    @contextlib.contextmanager
    def run(self, name: str) -> Iterator[None]:
        """Count what happens in the block and print it."""
        self.counters.start(())
        yield
        reading = self.counters.stop()
        is_light = isinstance(reading, LightReading)
        profile = summarise_light(reading, []) if is_light else summarise_run(reading, [], self._scope)
        print(json.dumps({"scenario": name, **profile}))


def run_program(handle: int, *arguments: int) -> None:
    """Run a raw tracepoint program once with these arguments, without the tracepoint."""
    context = (ctypes.c_uint64 * 12)(*arguments)
    address = ctypes.addressof(context)
    # union bpf_attr, struct test: program, return value, data, repetitions, size and address of the context, flags
    raw = struct.pack("<4I2Q4I2Q4I", handle, *[0] * 7, ctypes.sizeof(context), 0, address, *[0] * 5)
    attributes = ctypes.create_string_buffer(raw, len(raw))
    if ctypes.CDLL(None, use_errno=True).syscall(_BPF_SYSCALL, _PROG_TEST_RUN, attributes, len(raw)) != 0:
        raise OSError(ctypes.get_errno(), "BPF_PROG_TEST_RUN: " + os.strerror(ctypes.get_errno()))


def partial_completion(machine: Machine) -> None:
    """The first half ends, then the second: one request, in flight until the end."""
    machine.request(size=8192)
    machine.event("issue")
    machine.event("complete", finished=4096)
    machine.request(size=4096, sector=16)
    machine.event("complete", finished=4096)


def requeue(machine: Machine) -> None:
    """Given back by the driver, issued again, completed: one request."""
    machine.request()
    for name in ("issue", "requeue", "issue"):
        machine.event(name)
    machine.event("complete", finished=4096)


def requeue_and_fail(machine: Machine) -> None:
    """Given back by the driver and ended with an error before it is issued again."""
    machine.request()
    machine.event("issue")
    machine.event("requeue")
    machine.event("complete", error=10, finished=4096)


def start_before_attach(machine: Machine) -> None:
    """A completion whose start nobody saw; and the second end of a request that a flush follows: it counts nothing."""
    machine.request()
    machine.event("complete", finished=4096)
    machine.request(size=0)
    machine.event("complete", finished=0)


def missed_completion(machine: Machine) -> None:
    """The tag is used again, so the request before it must have ended."""
    machine.request()
    machine.event("issue")
    machine.request(sector=800)
    machine.event("issue")
    machine.event("complete", finished=4096)


def missed_issue(machine: Machine) -> None:
    """Only the end of the first request is seen, as on kernels that run programs preemptibly; then a sound one."""
    machine.has_times = True
    for issue in ([], ["issue"]):
        machine.open(31)
        machine.request(sector=4096)
        for name in ("start", *issue):
            machine.event(name)
        machine.event("complete", finished=4096)
    machine.close()
    machine.has_times = False


def missed_start(machine: Machine) -> None:
    """Only issue and end are seen: whose request it is, is asked at its issue."""
    machine.open(32)
    machine.request()
    machine.event("issue")
    machine.event("complete", finished=4096)
    machine.close()


def four_queues(machine: Machine) -> None:
    """One request on each of queues 0 to 2, two on queue 3, then all complete."""
    tags = [(0, 1), (1, 1), (2, 1), (3, 1), (3, 2)]
    for name in ("issue", "complete"):
        for queue, tag in tags:
            machine.request(queue=queue, tag=tag, sector=1000 * queue + 64 * tag)
            machine.event(name, finished=4096 if name == "complete" else 0)


def operations_and_sizes(machine: Machine) -> None:
    """Every operation, sizes that have no counter of their own, and a tag beyond all tags."""
    for tag, (op, size) in enumerate(
        [
            ("REQ_OP_READ", 1048576),
            ("REQ_OP_READ", 1049088),
            ("REQ_OP_WRITE", 520),
            ("REQ_OP_WRITE_ZEROES", 2097152),
            ("REQ_OP_DISCARD", 1 << 30),
            ("REQ_OP_FLUSH", 0),
            ("REQ_OP_DRV_IN", 4096),
        ]
    ):
        machine.request(op, tag=tag, size=size, sector=4096 * tag)
        machine.event("issue")
        machine.event("complete", finished=size)
    machine.request(tag=64)
    machine.event("issue")


def sequential_runs(machine: Machine) -> None:
    """A run of five, a pair, and two runs of three in turns, the second of them backwards."""
    starts = [8 * i for i in range(5)] + [10000, 10008] + [20000, 30016, 20008, 30008, 20016, 30000]
    for sector in starts:
        machine.request(sector=sector)
        machine.event("issue")
        machine.event("complete", finished=4096)


def addresses(machine: Machine) -> None:
    """More addresses than there is room for, of requests that belong to no file."""
    for sector in range(0, 40 * 8, 8):
        machine.do(sector, "issue")
    machine.do(0, "issue")


def files(machine: Machine) -> None:
    """More files than there is room for, each with two requests; then the first one's number in another file."""
    for inode in range(100, 114):
        machine.open(inode)
        machine.do(1000 * inode)
        machine.do(1000 * inode + 8)
    machine.close()


def reused_inode(machine: Machine) -> None:
    """A file that got the inode number of a deleted one."""
    for generation in (1, 2, 2):
        machine.open(7, generation)
        machine.do(800)
    machine.close()


def files_in_turns(machine: Machine) -> None:
    """Two files side by side on the device, written in turns: in order there, but with gaps in each file."""
    for i in range(24):
        machine.open(20 + i % 2)
        machine.do(8 * i)
    machine.close()


def streams_in_turns(machine: Machine) -> None:
    """Twelve streams of one file at equal distances: strided at the first look, sequential at the third."""
    machine.open(30)
    for i in range(36):
        machine.do(100_000 * (i % 12) + 8 * (i // 12))
    machine.close()


def light_parts(machine: Machine) -> None:
    """A request of three completions between two others, one of which is in two parts, too, and has the same size."""
    machine.has_times = True
    machine.request(size=4096)
    machine.event("complete", finished=4096)
    for remaining, finished in ((12288, 4096), (8192, 4096), (4096, 4096), (4096, 512), (3584, 3584)):
        machine.request(size=remaining)
        machine.event("complete", finished=finished)
    machine.request(size=4096)
    machine.event("complete", finished=4096)
    machine.has_times = False


def light_operations(machine: Machine) -> None:
    """Every operation, an error, a write that only asks for a flush, a driver's own one; none has a time.

    One more write has completed, which no program saw.
    """
    for op, size in (
        ("WRITE", 4096),
        ("READ", 520),
        ("FLUSH", 0),
        ("DISCARD", 1 << 30),
        ("DRV_IN", 4096),
        ("WRITE", 0),
    ):
        machine.request(f"REQ_OP_{op}", size=size)
        machine.event("complete", finished=size)
    machine.request()
    machine.event("complete", error=10, finished=4096)
    machine.set_completed(reads=1, writes=4, discards=1)


def main() -> None:
    """Print a profile per scenario."""
    FILE_CONSTANTS.update(MAX_FILES=16, MAX_ADDRESSES=32)
    with tempfile.TemporaryDirectory() as directory:
        _run_scenarios(Machine(queues=4, scope="device", directory=Path(directory)))
        light = Machine(queues=4, scope="device", directory=Path(directory), is_light=True)
        for scenario in (light_parts, light_operations):
            with light.run(scenario.__name__):
                scenario(light)
        light.counters.close()


def _run_scenarios(machine: Machine) -> None:
    """Run all scenarios; `across` reaches over two runs."""
    scenarios: list[Callable[[Machine], None]] = [
        partial_completion,
        requeue,
        requeue_and_fail,
        start_before_attach,
        missed_completion,
        missed_issue,
        missed_start,
        four_queues,
        operations_and_sizes,
        sequential_runs,
        addresses,
        files,
        reused_inode,
        files_in_turns,
        streams_in_turns,
    ]
    for scenario in scenarios:
        with machine.run(scenario.__name__):
            scenario(machine)
    with machine.run("across_begin"):
        machine.request()
        machine.event("issue")
    with machine.run("across_end"):
        machine.event("complete", finished=4096)
    with machine.run("hidden_completion"):
        machine.event("issue")
    machine.set_idle(True)
    with machine.run("after_hidden_completion"):
        machine.request(tag=7)
        machine.event("issue")
        machine.event("complete", finished=4096)
    machine.counters.close()


if __name__ == "__main__":
    main()
