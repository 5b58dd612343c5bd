"""Settings of a block device's queue in the kernel: changed for a run and put back after it."""

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from knobscope.devices.block import BlockDevice
from knobscope.durable_files import read_sealed, write_sealed
from knobscope.errors import UserError

#: Root's alone: what a queue had before a run changed it, until that is put back. Only the kernel knows its defaults,
#: which differ from version to version. A restart of the machine removes the notes with the settings.
_NOTES = Path("/run/knobscope-queues")


class SettingRefusedError(Exception):
    """The kernel does not take a value for a setting of this device, or of its file system."""


class SettingLostError(Exception):
    """Something else has changed a setting since it was made for a run."""


@contextmanager
def changed_queue(blocks: Sequence[BlockDevice], settings: Mapping[str, object]) -> Iterator[dict[str, str]]:
    """Set the queues of devices and yield what the kernel then says that they are; they are put back at the end.

    `settings` are names below `queue` in sysfs (Documentation/ABI/stable/sysfs-block), and so are those that are
    yielded, of the first device. Raises SettingRefusedError for a value that the kernel does not take, or a device does
    not keep, SettingLostError at the end where one is no longer what it was, UserError where one cannot be put back.
    """
    before = {block: {setting: _read(block, setting) for setting in settings} for block in blocks if settings}
    for block, values in before.items() if os.geteuid() == 0 else ():  # nobody else may change them
        _NOTES.mkdir(mode=0o700, exist_ok=True)
        write_sealed(_note_of(block), values)
    try:
        for block in blocks:
            for setting, value in settings.items():
                _write(block, setting, str(value))
        in_force = {block: {setting: _read(block, setting) for setting in settings} for block in blocks}
        yield dict(in_force[blocks[0]]) if blocks else {}
        for block, values in in_force.items():
            require_kept(block.name, values, {setting: _read(block, setting) for setting in values})
    finally:
        _put_back(before)


def require_kept(where: str, begin: Mapping[str, object], end: Mapping[str, object]) -> None:
    """Raise SettingLostError with the first setting that is another one at the end of a run than at its start."""
    for setting, value in begin.items():
        if end[setting] != value:
            raise SettingLostError(
                f"{setting} of {where} was {value} when the run began and is {end[setting]} at its end: something "
                "else, such as a rule of udev, has changed it"
            )


def restore_queue(block: BlockDevice) -> None:
    """Put back the settings of a queue that a killed run has left; its disk must be locked, or nobody's yet."""
    if os.geteuid() != 0 or not _note_of(block).exists():
        return
    before = read_sealed(_note_of(block))
    shown = ", ".join(f"{setting} = {value}" for setting, value in before.items())
    print(f"a killed run left settings of {block.name}, which are undone: {shown}", file=sys.stderr)
    _put_back({block: before})


def _put_back(before: Mapping[BlockDevice, Mapping[str, str]]) -> None:
    """Put back all settings that can be; UserError: one cannot, which is nothing that a configuration has done."""
    refused = []
    for block, values in before.items():
        for setting, value in values.items():
            try:
                _write(block, setting, value)
            except (OSError, SettingRefusedError) as error:
                refused.append(f"{setting} of {block.name}: {error}")
        if os.geteuid() == 0:
            _note_of(block).unlink(missing_ok=True)
    if refused:
        raise UserError(f"settings of the kernel could not be put back: {'; '.join(refused)}")


def _note_of(block: BlockDevice) -> Path:
    return _NOTES / f"{block.name}.json"


def _file(block: BlockDevice, setting: str) -> Path:
    if not re.fullmatch(r"[a-z_]+", setting):
        raise SettingRefusedError(f"{setting!r} is no name below `queue` in sysfs")
    return Path("/sys/block", block.name, "queue", setting)


def _read(block: BlockDevice, setting: str) -> str:
    """Return the value in force; of a list of choices that is the one in brackets."""
    text = _file(block, setting).read_text().strip()
    chosen = [word for word in text.split() if word.startswith("[")]
    return chosen[0].strip("[]") if chosen else text


def _write(block: BlockDevice, setting: str, value: str) -> None:
    try:
        _file(block, setting).write_text(value)
    except OSError as error:
        offered = _file(block, setting).read_text().strip()
        raise SettingRefusedError(
            f"the kernel refuses {setting} = {value} for {block.name} ({error.strerror}); it has {offered}"
        ) from error
    if (actual := _read(block, setting)) != value:
        raise SettingRefusedError(f"{setting} of {block.name} is {actual} after {value} was written to it")
