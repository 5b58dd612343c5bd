"""Boots kernels under QEMU, runs the checks in each, and prints what came out as a table.

boot.py KERNELS RESULTS [--only CHECK]... [RELEASE...]: directories of kernels (from setup/kernels.sh) and of results.
QEMU emulates the processor, so times in a guest mean nothing. The guest sees the whole file system of this machine
read-only, with a layer in memory above it.
"""

import argparse
import gzip
import json
import lzma
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from checks import CHECKS
from stacks import STACKS

HERE = Path(__file__).resolve().parent
_MODULES = (
    *("virtio", "virtio_ring", "virtio_pci", "9p", "9pnet_virtio", "overlay", "loop"),
    *("nvme", "virtio_scsi", "ahci", "sd_mod", "ext4", "xfs", "crc32c_generic"),
    *(
        "dm_mod",
        "dm_crypt",
        "xts",
        "aes_generic",
        "ecb",
        "raid0",
        "raid1",
        "raid10",
        "raid456",
        "bcache",
        "btrfs",
        "zram",
    ),
)
#: Module -> parameters: queues for writes apart from those for reads make two per processor.
_PARAMETERS = {"nvme.ko": "write_queues=2"}
_TIMEOUT_S = 3600
_MEMORY_MIB = 3072


def list_modules(kernel: Path) -> list[Path]:
    """Return the files of the modules and of those they need, in the order in which they are loaded."""
    release = kernel.name
    files: dict[str, None] = {}
    for module in _MODULES:
        command = ["modprobe", "-d", str(kernel), "-S", release, "--show-depends", module]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # built in: nothing to load
        files |= {line.split()[1]: None for line in done.stdout.splitlines() if line.startswith("insmod")}
    return [Path(file) for file in files]


def unpack(module: Path) -> bytes:
    """Return a module; the guest's insmod knows no compression."""
    if module.suffix == ".xz":
        return lzma.decompress(module.read_bytes())
    if module.suffix == ".zst":
        return subprocess.run(["zstd", "-dc", str(module)], capture_output=True, check=True).stdout
    return module.read_bytes()


def make_initramfs(kernel: Path, archive: Path) -> None:
    """Write the first file system of a guest: busybox, modules, and guest.sh as the first process."""
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for name in ("bin", "lib", "proc", "sys", "dev", "tmp"):
            (root / name).mkdir()
        shutil.copy("/bin/busybox", root / "bin/busybox")
        shutil.copy(HERE / "guest.sh", root / "init")
        (root / "init").chmod(0o755)
        names = []
        for module in list_modules(kernel):
            names.append(module.name.split(".")[0] + ".ko")
            (root / "lib" / names[-1]).write_bytes(unpack(module))
        (root / "modules").write_text("".join(f"{name} {_PARAMETERS.get(name, '')}\n" for name in names))
        files = subprocess.run(["find", "."], cwd=root, capture_output=True, check=True).stdout
        packed = subprocess.run(
            ["cpio", "-o", "-H", "newc", "--quiet"], cwd=root, input=files, capture_output=True, check=True
        )
    archive.write_bytes(gzip.compress(packed.stdout, 1))


def boot(kernel: Path, results: Path, only: list[str]) -> dict[str, Any]:
    """Boot a kernel and return what the checks in it reported; what it printed lies beside the results."""
    log = results / f"{kernel.name}.log"
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        make_initramfs(kernel, work / "initramfs")
        disks = [work / f"disk{i}" for i in range(4)]
        for disk in disks:
            disk.touch()
            os.truncate(disk, 512 << 20)
        checks = shlex.join([sys.executable, str(HERE / "checks.py"), "/tmp/results", *only])
        with log.open("wb") as output:
            command = ["timeout", str(_TIMEOUT_S), *describe_machine(kernel, work, disks, results, checks)]
            subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
    report = results / f"{kernel.name}.json"
    if not report.exists():
        return {"kernel": kernel.name, "failed": f"no report; see {log}"}
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def describe_machine(kernel: Path, work: Path, disks: list[Path], results: Path, checks: str) -> list[str]:
    """Return the command of a machine: NVMe with two queues per processor, NVMe with multipath, SATA, SCSI."""
    processors = 2
    command = [
        "qemu-system-x86_64",
        "-nodefaults",
        "-no-reboot",
        "-nographic",
        "-serial",
        "stdio",
        "-accel",
        "tcg,thread=multi",
    ]
    command += ["-cpu", "max", "-smp", str(processors), "-m", str(_MEMORY_MIB), "-kernel", str(kernel / "vmlinuz")]
    command += ["-initrd", str(work / "initramfs"), "-append", f"console=ttyS0 panic=-1 checks={checks}"]
    for tag, path, options in (("host", Path("/"), ",readonly=on,multidevs=remap"), ("results", results, "")):
        command += ["-fsdev", f"local,id={tag},path={path},security_model=none{options}"]
        command += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
    for name, disk in zip(("nvme", "multi", "sata", "scsi"), disks, strict=True):
        command += ["-drive", f"file={disk},if=none,id={name},format=raw,cache=unsafe"]
    command += ["-device", f"nvme,serial=n0,drive=nvme,max_ioqpairs={2 * processors}"]
    command += ["-device", "nvme-subsys,id=subsystem", "-device", "nvme,serial=n1,subsys=subsystem,max_ioqpairs=1"]
    command += ["-device", "nvme-ns,drive=multi,shared=on"]
    command += ["-device", "ich9-ahci,id=ahci", "-device", "ide-hd,drive=sata,bus=ahci.0,rotation_rate=7200"]
    return [*command, "-device", f"virtio-scsi-pci,num_queues={processors}", "-device", "scsi-hd,drive=scsi"]


def tabulate(reports: list[dict[str, Any]]) -> str:
    """Return tables in Markdown: a row per kernel and device, per kernel about waits, and per kernel and stack."""
    lines = ["| kernel | device | requests | bytes | sizes | depth, device | depth, per queue | own + inode | said |"]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    waits = ["| kernel | threads | named, of wall time | busy, s | blocked, s | said |", "|---|---|---|---|---|---|"]
    stacks = ["| kernel | stack | bytes of its disks | named | files | other names | read | written | said |"]
    stacks.append("|---|---|---|---|---|---|---|---|---|")
    for report in reports:
        for device, found in report.items():
            if isinstance(found, dict):
                if device in STACKS:
                    rows, cells = stacks, [device, *describe_stack(found)]
                elif device == "waits":
                    rows, cells = waits, describe_waits(found)
                else:
                    rows, cells = lines, [device, *describe(found)]
                rows.append(f"| {report['kernel']} | {' | '.join(cells)} |")
        if "failed" in report:
            lines.append(f"| {report['kernel']} | - | {report['failed']} | | | | | | |")
    return "\n".join([*lines, "", *waits, "", *stacks])


def describe_stack(found: dict[str, Any]) -> list[str]:
    """Return the cells about a stack: ours / the kernel's bytes, and bytes per byte above of each level."""
    if "named" not in found:
        return [str(found["failed"]), *[""] * 6]
    sums = [str(found["device_bytes"]), *([str(found["kernel_bytes"])] if "kernel_bytes" in found else [])]
    names = {name: f"{name} {size}" for name, size in found["names"].items()}
    files = [names.pop(name) for name in ("direct", "buffered") if name in names]
    ratios = [[row[f"{way}_amplification"] for row in found["levels"][1:]] for way in ("read", "write")]
    told = [f"{count} {name}" for name, count in found["lost"].items() if count]
    return [
        " / ".join(sums),
        f"{100 * found['named']:.2f} %",
        ", ".join(files),
        ", ".join(names.values()),
        *("; ".join(f"{ratio:.3f}" for ratio in way) for way in ratios),
        "; ".join([*told, *found["limits"], *([found["failed"]] if "failed" in found else [])]),
    ]


def describe_waits(found: dict[str, Any]) -> list[str]:
    """Return the cells about waits: ours / the kernel's account."""
    if "threads" not in found:
        return [str(found["failed"]), *[""] * 4]
    lowest, highest = (f"{100 * share:.1f}" for share in found["named_shares"])
    pairs = (" / ".join(f"{us / 1e6:.2f}" for us in found[name]) for name in ("busy_us", "blocked_us"))
    told = [f"{count} {name}" for name, count in found["told"].items() if count]
    return [str(found["threads"]), f"{lowest} to {highest} %", *pairs, "; ".join([*told, *found["limits"]])]


def describe(found: dict[str, Any]) -> list[str]:
    """Return the cells of one device: ours / ftrace's."""
    if "requests" not in found:
        return [str(found.get("failed") or found.get("reason") or found), *[""] * 6]
    pairs = found.get("depths") or {"-1": found["depth"]}  # in light mode
    depths = {queue: f"{ours:.3f} / {theirs:.3f}" for queue, (ours, theirs) in pairs.items()}
    told = [f"{count} {name}" for name, count in found.get("told", {"hidden": found.get("hidden")}).items() if count]
    told += [f"no {probe}: {why}" for probe, why in found.get("missing", {}).items()]
    share = found.get("own_and_inode_share", found.get("own", 0))
    return [
        *(" / ".join(str(count) for count in found[name]) for name in ("requests", "bytes")),
        "equal" if found["sizes_equal"] else "differ",
        depths.pop("-1"),
        ", ".join(depths.values()),
        f"{100 * share:.1f} %",
        "; ".join([*told, *found["limits"]]),
    ]


def main() -> None:
    """Boot the kernels that were asked for, or all there are, one after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", type=Path, help="what setup/kernels.sh left")
    parser.add_argument("results", type=Path, help="where reports and the guests' output go")
    parser.add_argument("releases", nargs="*", help="default: all")
    parser.add_argument("--only", action="append", default=[], choices=CHECKS, help="may be repeated; default: all")
    options = parser.parse_intermixed_args()
    options.results.mkdir(parents=True, exist_ok=True)
    found = sorted(path for path in options.kernels.iterdir() if (path / "vmlinuz").exists())
    chosen = [path for path in found if not options.releases or path.name in options.releases]
    if not chosen:
        parser.error(
            f"no such kernel below {options.kernels}; there are: {', '.join(path.name for path in found) or 'none'}"
        )
    reports = [boot(path.resolve(), options.results.resolve(), options.only) for path in chosen]
    print(tabulate(reports))
    if any(
        "failed" in report or "failed" in part
        for report in reports
        for part in report.values()
        if isinstance(part, dict)
    ):
        sys.exit(1)


if __name__ == "__main__":
    main()
