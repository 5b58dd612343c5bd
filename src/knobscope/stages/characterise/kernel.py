"""What the kernel says of a block device (sysfs), for comparison with what was measured."""

from dataclasses import dataclass
from pathlib import Path

from knobscope.devices import BlockDevice


@dataclass(frozen=True)
class KernelFacts:
    """Limits of the request queue; None where this kernel or device does not tell.

    `Documentation/ABI/stable/sysfs-block` of the kernel explains them. Sizes are bytes.
    """

    logical_block_size: int | None
    physical_block_size: int | None
    minimum_io_size: int | None
    optimal_io_size: int | None
    atomic_write_unit_min_bytes: int | None
    atomic_write_unit_max_bytes: int | None
    rotational: int | None
    fua: int | None
    nr_requests: int | None
    write_cache: str | None
    hardware_queues: int | None


_NUMBERS = (
    "logical_block_size",
    "physical_block_size",
    "minimum_io_size",
    "optimal_io_size",
    "atomic_write_unit_min_bytes",
    "atomic_write_unit_max_bytes",
    "rotational",
    "fua",
    "nr_requests",
)


def read_kernel_facts(block: BlockDevice) -> KernelFacts:
    """Return what sysfs has of a disk; a partition has the queue of its disk."""
    device = Path(f"/sys/dev/block/{block.major}:{block.minor}").resolve(strict=True)
    disk = device.parent if (device / "partition").exists() else device
    queues = disk / "mq"
    numbers = {name: _read(disk / "queue" / name) for name in _NUMBERS}
    return KernelFacts(
        **{name: None if text is None else int(text) for name, text in numbers.items()},
        write_cache=_read(disk / "queue" / "write_cache"),
        hardware_queues=len(list(queues.iterdir())) if queues.is_dir() else None,
    )


def _read(file: Path) -> str | None:
    return file.read_text().strip() if file.exists() else None
