"""What a file system was made with, as the kernel shows it."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from knobscope.devices.block import find_block_device
from knobscope.devices.mounts import find_mount
from knobscope.devices.queue import SettingRefusedError


def _has_journal(directory: Path) -> bool:
    """Whether an ext4 has a journal, or a file system of another type, which always has one."""
    task = Path("/sys/fs/ext4", find_block_device(directory).name, "journal_task")
    return not task.exists() or task.read_text().strip() != "<none>"


_READERS: dict[str, Callable[[Path], object]] = {
    "type": lambda directory: find_mount(directory).filesystem,
    "block_bytes": lambda directory: os.statvfs(directory).f_bsize,
    "journal": _has_journal,
}


def read_filesystem(directory: Path, settings: Mapping[str, object]) -> dict[str, object]:
    """Return what settings of the file system of a directory are; raises SettingRefusedError where one differs."""
    actual = {name: _READERS[name](directory) for name in settings}
    for name, value in settings.items():
        if actual[name] != value:
            raise SettingRefusedError(f"{name} of the file system of {directory} is {actual[name]}, not {value}")
    return actual
