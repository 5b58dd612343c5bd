"""Settings with which a file system is mounted: changed for a run and put back after it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from knobscope.devices.mounts import find_mount
from knobscope.devices.privileged import run_as_root
from knobscope.devices.queue import SettingRefusedError
from knobscope.errors import UserError

__all__ = ["changed_mounts"]

_ATIMES = ("noatime", "relatime")
#: A mount keeps the flag that it has, and noatime wins over all others: what it had is taken back first.
_WRITTEN_ATIMES = {
    "noatime": "noatime",
    "relatime": "atime,nostrictatime,relatime",
    "strictatime": "atime,norelatime,strictatime",
}
_EXT4_COMMIT_S = 5


@dataclass(frozen=True)
class _Setting:
    """How a setting is written as an option of mount, and read among those that the kernel shows."""

    option: Callable[[object], str]
    read: Callable[[frozenset[str]], object]


def _read_commit(options: frozenset[str]) -> int:
    """Return the seconds between commits of the journal; ext4 does not show its default."""
    shown = [option.removeprefix("commit=") for option in options if option.startswith("commit=")]
    return int(shown[0]) if shown else _EXT4_COMMIT_S


_SETTINGS = {
    "barrier": _Setting(lambda value: f"barrier={int(bool(value))}", lambda options: "nobarrier" not in options),
    "commit_s": _Setting(lambda value: f"commit={value}", _read_commit),
    "atime": _Setting(
        lambda value: _WRITTEN_ATIMES[str(value)],
        lambda options: next((option for option in _ATIMES if option in options), "strictatime"),
    ),
}


@contextmanager
def changed_mounts(directories: Sequence[Path], settings: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """Mount the file systems of directories anew with settings, and yield what the kernel then says of the first.

    They are put back at the end. Nothing has to be closed for it: a file system is changed while it is mounted. Raises
    SettingRefusedError for a setting that a file system does not take.
    """
    points = [find_mount(directory).point for directory in directories]
    before = [{setting: _read(point, setting) for setting in settings} for point in points]
    try:
        for point in points:
            _write(point, settings)
        yield {setting: _read(point, setting) for point in points[:1] for setting in settings}
    finally:
        for point, values in zip(points, before, strict=True):
            _write(point, values)


def _read(point: Path, setting: str) -> object:
    return _SETTINGS[setting].read(find_mount(point).options)


def _write(point: Path, settings: Mapping[str, object]) -> None:
    if not settings:
        return
    options = ",".join(_SETTINGS[name].option(value) for name, value in settings.items())
    try:
        run_as_root("mount", ["-o", f"remount,{options}", str(point)])
    except UserError as error:
        raise SettingRefusedError(f"the file system of {point} is not mounted with {options}: {error}") from error
    for name, value in settings.items():
        if (actual := _read(point, name)) != value:
            raise SettingRefusedError(f"{name} of {point} is {actual} after it was mounted with {options}")
