"""Runs inside a guest: what the probes say of real devices there, against what ftrace says. Writes one JSON file.

checks.py RESULTS [CHECK...]: a directory for the result, and which checks (default: all but `unit`).
"""

import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ftrace import Traced, trace_requests
from stacks import STACKS, share_by_name, stacked
from units import SOCKET, UNIT, running_unit

from knobscope.devices import find_block_device
from knobscope.watch import Profile, Watch, gate, open_watch

_MIB = 1 << 20
_TRACING = Path("/sys/kernel/tracing")
_BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
#: Steps of benchmarks/waits.c, all at once: threads.
_STEPS = "cpu:1 sleep:1 read:1 write:1 fsync:2 fault:1 pipe:1 lock:2 aio:1 uring:1"
_STEPS_S = 3


def run(*command: str) -> None:
    """Run a program that has to succeed."""
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def follow(watch: Watch, traced: Traced, command: list[str], directory: str = "/dev") -> Profile:
    """Return the profile of a command, with all that it leaves in the page cache of the directory's file system.

    Nothing else may use the device.
    """
    read_end, opener = os.pipe()
    program = [sys.executable, "-I", "-S", gate.__file__, str(read_end), *command]
    with subprocess.Popen(program, pass_fds=[read_end], stdout=subprocess.DEVNULL) as process:
        os.close(read_end)
        try:
            watch.follow([process.pid])
            run("sync", "-f", directory)
            watch.begin()
            traced.begin()
            os.write(opener, b"!")
            process.wait()
            run("sync", "-f", directory)
            traced.end()
            return watch.end()
        finally:
            os.close(opener)  # after a failure the program ends instead of waiting for its byte


def compare(profile: Profile, traced: Traced) -> dict[str, Any]:
    """Return what both say, side by side: ours first."""
    sizes = {(row["op"], row["bytes"]): row["requests"] for row in profile["io_sizes"] if row["op"] != "discard"}
    rows = [row for row in profile["io_profile"] if row["op"] in ("read", "write")]
    queues = sorted({row["queue"] for row in profile["queue_depth"]} - {-1})
    depths = {}
    for queue in (*queues, -1):
        times = {row["depth"]: row["time_ns"] for row in profile["queue_depth"] if row["queue"] == queue}
        busy = sum(time for depth, time in times.items() if depth)
        mean = sum(depth * time for depth, time in times.items()) / busy if busy else 0.0
        depths[queue] = [mean, traced.find_mean_depth(traced.moves if queue < 0 else traced.queues.get(queue, []))]
    return {
        "requests": [sum(row["device_requests"] for row in rows), traced.count()],
        "bytes": [sum(row["device_bytes"] for row in rows), traced.sum_bytes()],
        "sizes_equal": sizes == dict(traced.sizes),
        "depths": depths,
        "depth_bounds": _bound_depth(profile, depths[-1][0]),
        "lost_by_ftrace": traced.lost,
        "told": {
            name: profile[name]
            for name in ("lost_events", "missed_events", "hidden_completions", "starts_without_completion", "requeues")
        },
    }


def _bound_depth(profile: Profile, mean: float) -> list[float]:
    """Return between what the profile says that the mean depth is, in view of what it did not see."""
    return [mean - (profile["depth_excess"] or 0), mean + (profile["depth_shortfall"] or 0)]


def check_direct(tracing: Path, disk: str) -> dict[str, Any]:
    """Random direct writes and reads by as many jobs as there are hardware queues."""
    block = find_block_device(Path("/dev", disk))
    began = time.monotonic()
    with open_watch(block, 4096, "device") as watch:
        ready_s = time.monotonic() - began
        report: dict[str, Any] = {"monitor": watch.monitor, "reason": watch.reason, "ready_s": ready_s}
        if watch.monitor != "bpf":
            return report
        options = ["--name=j", f"--filename=/dev/{disk}", "--direct=1", "--ioengine=libaio", "--iodepth=4", "--bs=4k"]
        options += ["--rw=randrw", "--number_ios=400", "--numjobs=4", "--output=/dev/null", "--size=256m"]
        requests = _find_requests(disk)
        with trace_requests(tracing, requests, _find_number(requests, block)) as traced:
            profile = follow(watch, traced, ["fio", *options])
        return report | {"limits": list(watch.limits)} | compare(profile, traced) | {"own": _share_of_own(profile)}


def check_light(tracing: Path, disk: str) -> dict[str, Any]:
    """The same in light mode, with flushes: counted at completions."""
    block = find_block_device(Path("/dev", disk))
    with open_watch(block, 4096, "device", light=True) as watch:
        report: dict[str, Any] = {"monitor": watch.monitor, "reason": watch.reason}
        if watch.monitor != "light":
            return report
        options = ["--name=j", f"--filename=/dev/{disk}", "--direct=1", "--ioengine=libaio", "--iodepth=4"]
        options += ["--rw=randrw", "--bsrange=4k-64k", "--number_ios=400", "--numjobs=4", "--fsync=16", "--size=256m"]
        requests = _find_requests(disk)
        with trace_requests(tracing, requests, _find_number(requests, block)) as traced:
            profile = follow(watch, traced, ["fio", *options, "--output=/dev/null"])
    counts = {row["op"]: row["requests"] for row in profile["io_profile"]}
    sizes = {(row["op"], row["bytes"]): row["requests"] for row in profile["io_sizes"]}
    return report | {
        "hidden": profile["hidden_completions"],
        "requests": [counts["read"] + counts["write"], traced.count()],
        "bytes": [sum(row["bytes"] for row in profile["io_profile"]), traced.sum_bytes()],
        "flushes": [counts["flush"], traced.flushes],
        "sizes_equal": sizes == dict(traced.sizes),
        "depth": [profile["mean_depth"], traced.find_little_depth()],
        "timed": sum(row["requests"] for row in profile["io_latency"]),
        "lost_by_ftrace": traced.lost,
        "limits": profile["limits"],
    }


def _find_nvme(serial: str) -> str:
    """Return the first disk of a controller: which one is nvme0 differs."""
    controllers = Path("/sys/class/nvme").iterdir()
    return next(entry.name + "n1" for entry in controllers if (entry / "serial").read_text().strip() == serial)


def _find_disk(vendor: str) -> str:
    """Return the disk of the SATA or of the SCSI controller: which one is sda differs."""
    disks = Path("/sys/block").glob("sd*")
    return next(disk.name for disk in disks if (disk / "device/vendor").read_text().strip() == vendor)


def _list_disks() -> list[Path]:
    """Return disks of four kinds for a stack."""
    return [Path("/dev", disk) for disk in (_find_disk("QEMU"), _find_disk("ATA"), _find_nvme("n0"), _find_nvme("n1"))]


def _find_requests(disk: str) -> str:
    """Return the disk that has the requests: of a multipath NVMe device its path."""
    paths = sorted(Path("/sys/class/block").glob(disk.replace("n1", "c*n1"))) if disk.startswith("nvme") else []
    return paths[0].name if paths and not Path("/sys/block", disk, "mq").is_dir() else disk


def _find_number(requests: str, block: Any) -> str:
    """Return MAJ:MIN; a hidden path has a number that only its requests show."""
    return f"{block.major}:{block.minor}" if Path("/sys/class/block", requests, "dev").exists() else ""


def _share_of_own(profile: Profile) -> float:
    rows = [row for row in profile["io_profile"] if row["op"] in ("read", "write")]
    return sum(row["own_requests"] for row in rows) / max(sum(row["device_requests"] for row in rows), 1)


@contextlib.contextmanager
def _mounted(disk: str, filesystem: str) -> Iterator[Path]:
    run(f"mkfs.{filesystem}", "-q", f"/dev/{disk}")
    mount = Path(tempfile.mkdtemp())
    run("mount", f"/dev/{disk}", str(mount))
    try:
        yield mount
    finally:
        run("umount", str(mount))
        mount.rmdir()


def check_buffered(tracing: Path, disk: str, filesystem: str) -> dict[str, Any]:
    """A file is written through the page cache and synced by somebody else; with all probes."""
    block = find_block_device(Path("/dev", disk))
    with (
        _mounted(disk, filesystem) as mount,
        open_watch(block, 4096, "device", probes=("syscalls", "faults")) as watch,
    ):
        report: dict[str, Any] = {"monitor": watch.monitor, "reason": watch.reason}
        report |= {"missing": dict(watch.missing_probes)}
        if watch.monitor != "bpf":
            return report
        with trace_requests(tracing, disk, f"{block.major}:{block.minor}") as traced:
            command = ["dd", "if=/dev/zero", f"of={mount}/written", "bs=64k", "count=384"]
            profile = follow(watch, traced, command, str(mount))
        write = next(row for row in profile["io_profile"] if row["op"] == "write")
        names = {row["name"]: row["bytes"] for row in profile["files"] if row["op"] == "write"}
        return (
            report
            | {"limits": list(watch.limits)}
            | compare(profile, traced)
            | {
                "own_and_inode_share": (write["own_bytes"] + write["inode_bytes"]) / (24 * _MIB),
                "file_bytes": names.get("written", 0),
                "call_bytes": sum(row["bytes"] for row in profile.get("file_access", ()) if row["name"] == "written"),
            }
        )


def check_waits(disk: str) -> dict[str, Any]:
    """Threads whose waits are known: the named reasons of each add up to its life, within 1 %."""
    sys.path += [str(_BENCHMARKS), str(_BENCHMARKS.parent)]
    from benchmarks.waits import EXPECTED, read_case, run_case  # `waits` alone may be the probe's module

    block = find_block_device(Path("/dev", disk))
    with _mounted(disk, "ext4") as mount, open_watch(block, 4096, "device", probes=("waits",)) as watch:
        report: dict[str, Any] = {"monitor": watch.monitor, "reason": watch.reason, "limits": list(watch.limits)}
        if watch.monitor != "bpf" or watch.missing_probes:
            return report | {"failed": f"no waits: {watch.missing_probes.get('waits', watch.reason)}"}
        run("cc", "-O2", "-o", f"{mount}/waits", str(_BENCHMARKS / "waits.c"), "-lpthread")
        (mount / "data").write_bytes(bytes(64 * _MIB))
        profile, output = run_case(watch, mount / "waits", mount / "data", _STEPS, _STEPS_S)
    case = read_case(_STEPS, EXPECTED, profile, output)
    threads = {int(line.split()[0]) for line in output.splitlines()}
    named = dict.fromkeys(threads, 0.0)
    for row in profile["waits"]:
        if row["tid"] in threads and row["reason"] != "unknown":
            named[row["tid"]] += row["time_us"]
    walls = {row["tid"]: row["wall_us"] for row in profile["wait_threads"] if row["tid"] in threads}
    shares = sorted(named[tid] / wall for tid, wall in walls.items())
    report |= {
        "threads": len(shares),
        "named_shares": [shares[0], shares[-1]],
        "busy_us": [case.found_computed + case.found_queued, case.computed + case.queued],
        "blocked_us": [case.expected, case.blocked],
        "told": dict(profile["lost_waits"]),
    }
    return report if 0.99 <= shares[0] <= shares[-1] <= 1.01 else report | {"failed": "the waits do not add up"}


#: Reads 25 blocks of 4 KiB by NVMe commands of its own; the argument is the disk.
_PASSTHROUGH = """
import ctypes, fcntl, os, struct, sys
disk, data = os.open(sys.argv[1], os.O_RDWR), ctypes.create_string_buffer(4096)
for number in range(25):
    where = 0, ctypes.addressof(data), 0, 4096, 8 * number, 0, 7, 0, 0, 0, 0, 0
    fcntl.ioctl(disk, 0xC0484E43, bytearray(struct.pack("<BBHIIIQQ10I", 2, 0, 0, 1, 0, 0, *where)))
"""


def check_passthrough(disk: str) -> dict[str, Any]:
    """Commands that a program sends to an NVMe device past the block layer are counted, and nothing else is."""
    with open_watch(find_block_device(Path("/dev", disk)), 4096, "device") as watch:
        if watch.monitor != "bpf":
            return {"monitor": watch.monitor, "failed": watch.reason}
        program = [sys.executable, "-c", _PASSTHROUGH, f"/dev/{disk}"]
        profile = follow(watch, Traced(Path("/dev/null")), program)
    counts = profile["passthrough_requests"], profile["passthrough_bytes"]
    report = {"commands": counts, "others": sum(row["requests"] or 0 for row in profile["io_profile"])}
    is_right = counts == (25, 25 * 4096) and report["others"] == 0
    return report if is_right else report | {"failed": "expected 25 commands of 4096 bytes, and no requests"}


def _use_files(watch: Watch, mount: Path) -> Profile:
    job = f"fio --name=j --filename={mount}/direct --direct=1 --ioengine=libaio --iodepth=4 --bs=4k --size=2m"
    commands = f"{job} --rw=randwrite --output=/dev/null; "
    for engine in ("libaio", "psync"):  # since 7.3 the kernel ends a read of one block in another way for each
        commands += f"{job} --rw=randread --io_size=1m --ioengine={engine} --output=/dev/null; "
    commands += f"yes compressible | dd of={mount}/buffered bs=64k count=64 iflag=fullblock"
    return follow(watch, Traced(Path("/dev/null")), ["sh", "-c", commands], str(mount))


def check_stack(name: str, disks: Sequence[Path]) -> dict[str, Any]:
    """Direct and buffered I/O on a stack: which bytes of its disks have a name, and how many the kernel counts."""
    with stacked(name, disks) as mount:
        block = find_block_device(mount)
        with open_watch(block, 4096, "device") as watch:
            report: dict[str, Any] = {"monitor": watch.monitor, "reason": watch.reason, "limits": list(watch.limits)}
            if watch.monitor != "bpf":
                return report | {"failed": watch.reason}
            profile = _use_files(watch, mount)
    writes = {row["op"]: row for row in profile["io_profile"]}["write"]
    report |= share_by_name(profile) | {
        "levels": profile["levels"],
        "own_and_inode_share": (writes["own_bytes"] + writes["inode_bytes"]) / writes["device_bytes"],
        "submitters": [row["submitter"] for row in profile["submitters"]],
        "lost": {key: profile[key] for key in ("lost_events", "hidden_completions", "files_overflow", "missed_events")},
    }
    if report["named"] < 0.99:
        return report | {"failed": "bytes without a name"}
    if STACKS[name]:
        disks_level = profile["levels"][len(STACKS[name])]
        report["kernel_bytes"] = disks_level["read_bytes"] + disks_level["write_bytes"]
        if abs(report["kernel_bytes"] - report["device_bytes"]) > 0.01 * report["kernel_bytes"]:
            return report | {"failed": "other bytes than the kernel's"}
    return report


def check_light_stack(name: str, disks: Sequence[Path]) -> dict[str, Any]:
    """The same in light mode: the bytes of all disks, and how many the kernel counts."""
    with (
        stacked(name, disks) as mount,
        open_watch(find_block_device(mount), 4096, "device", light=True) as watch,
    ):
        if watch.monitor != "light":
            return {"monitor": watch.monitor, "failed": watch.reason}
        profile = _use_files(watch, mount)
    below = profile["levels"][len(STACKS[name])]
    ours, theirs = share_by_name(profile)["device_bytes"], below["read_bytes"] + below["write_bytes"]
    report = {"levels": profile["levels"], "reason": f"{len(below['devices'])} disks: {ours} / {theirs} bytes"}
    return report if abs(ours - theirs) <= 0.01 * theirs else report | {"failed": f"other bytes: {report['reason']}"}


def check_unit(disk: str) -> dict[str, Any]:
    """Attach to a unit of systemd while a client writes to its server: found, watched in its cgroup, left as it was."""
    result = Path("/tmp/attached.json")
    knobscope = [str(Path(sys.executable).with_name("knobscope")), "attach", "--unit", UNIT, "--json", str(result)]
    load = ["redis-benchmark", "-q", "-s", SOCKET, "-c", "1", "-t", "set", "-n", "1000000"]
    with _mounted(disk, "ext4") as mount, running_unit(mount) as pid:
        group = Path(f"/proc/{pid}/cgroup").read_text().strip()
        with subprocess.Popen(load, stdout=subprocess.DEVNULL) as client:
            subprocess.run([*knobscope, "--for", "10s"], cwd=_BENCHMARKS.parent, check=True)  # where specs are
            client.kill()
        is_untouched = Path(f"/proc/{pid}/cgroup").read_text().strip() == group
    attached = json.loads(result.read_text())
    writes = next(row for row in attached["io_profile"] if row["op"] == "write")
    report = {
        "server": attached["server"],
        "reason": f"{attached['monitor']}: {writes['requests']} writes, {attached['server']['pid'] == pid}, {group}",
    }
    found = attached["monitor"], attached["server"]["dbms"], attached["server"]["pid"]
    is_right = found == ("bpf", "redis", pid) and UNIT in group and is_untouched
    return report if is_right and writes["requests"] else report | {"failed": f"not as expected: {report['reason']}"}


#: Name -> check of a guest's device.
CHECKS: dict[str, Callable[[], dict[str, Any]]] = {
    "nvme": lambda: check_direct(_TRACING, _find_nvme("n0")),
    "light": lambda: check_light(_TRACING, _find_nvme("n0")),
    "waits": lambda: check_waits(_find_nvme("n0")),
    "passthrough": lambda: check_passthrough(_find_nvme("n0")),
    "unit": lambda: check_unit(_find_disk("QEMU")),
    "multipath": lambda: check_direct(_TRACING, _find_nvme("n1")),
    "ahci-ext4": lambda: check_buffered(_TRACING, _find_disk("ATA"), "ext4"),
    **{name: functools.partial(lambda name: check_stack(name, _list_disks()), name) for name in STACKS},
    "light-raid1": lambda: check_light_stack("raid1", _list_disks()),
    "light-stripes": lambda: check_light_stack("stripes", _list_disks()),
    "scsi-xfs": lambda: check_buffered(_TRACING, _find_disk("QEMU"), "xfs"),
}


def main() -> None:
    """Check one device after another; what fails is told, the rest goes on."""
    results, checks = Path(sys.argv[1]), sys.argv[2:] or [name for name in CHECKS if name != "unit"]  # needs systemd
    report: dict[str, Any] = {"kernel": os.uname().release, "failed": "the checks did not end"}
    file = results / f"{os.uname().release}.json"
    for name in checks:
        print(f"guest: {name}", flush=True)
        try:
            report[name] = CHECKS[name]()
        except (OSError, subprocess.CalledProcessError, RuntimeError, LookupError) as failure:
            report[name] = {"failed": f"{type(failure).__name__}: {failure}"}
        print(f"guest: {json.dumps(report[name])}", flush=True)
        file.write_text(json.dumps(report, indent=1))
    del report["failed"]
    file.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
