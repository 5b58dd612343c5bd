"""Settings with which a file system is mounted: changed for a run and put back after it."""

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from knobscope.devices.folder import DeviceFolder, claim_folder
from knobscope.devices.mounts import Mount, find_mount
from knobscope.devices.own_directory import released
from knobscope.devices.privileged import run_as_root
from knobscope.devices.queue import SettingRefusedError, require_kept
from knobscope.errors import UserError
from knobscope.processes.view import DEVICES_FOLDER

_ATIMES = ("noatime", "relatime")
#: A mount keeps the flag that it has, and noatime wins over all others: what it had is taken back first.
_WRITTEN_ATIMES = {
    "noatime": "noatime",
    "relatime": "atime,nostrictatime,relatime",
    "strictatime": "atime,norelatime,strictatime",
}
_EXT4_COMMIT_S = 5
_PATIENCE_S, _STEP_S = 60.0, 0.02
#: Of a mount, not of its file system: what is mounted anew has them again.
_FLAGS = ("nosuid", "nodev", "noexec", "ro")


@dataclass(frozen=True)
class _Setting:
    """How a setting is written as an option of mount, and read among those that the kernel shows."""

    option: Callable[[object], str]
    read: Callable[[frozenset[str]], object]
    needs_new_mount: bool = False  # whether the kernel changes it only when nothing is mounted


def _read_commit(options: frozenset[str]) -> int:
    """Return the seconds between commits of the journal; ext4 does not show its default."""
    shown = [option.removeprefix("commit=") for option in options if option.startswith("commit=")]
    return int(shown[0]) if shown else _EXT4_COMMIT_S


def _read_data(options: frozenset[str]) -> str:
    """Return what the journal does with data; ext4 may leave out its default."""
    return next((option.removeprefix("data=") for option in options if option.startswith("data=")), "ordered")


_SETTINGS = {
    "barrier": _Setting(lambda value: f"barrier={int(bool(value))}", lambda options: "nobarrier" not in options),
    "commit_s": _Setting(lambda value: f"commit={value}", _read_commit),
    "atime": _Setting(
        lambda value: _WRITTEN_ATIMES[str(value)],
        lambda options: next((option for option in _ATIMES if option in options), "strictatime"),
    ),
    "data": _Setting(lambda value: f"data={value}", _read_data, needs_new_mount=True),
}
#: What a file system has that was mounted without options, as those of emulated devices are.
_USUAL = {"barrier": True, "commit_s": _EXT4_COMMIT_S, "atime": "relatime", "data": "ordered"}


def restore_mount(directory: Path) -> None:
    """Mount the file system of a directory with the usual settings, where a killed run has left others."""
    point = find_mount(directory).point
    if left := {name: value for name, value in _USUAL.items() if _read(point, name) != value}:
        shown = ", ".join(f"{name} = {value}" for name, value in left.items())
        print(f"a killed run left settings of {point}, which are undone: {shown}", file=sys.stderr)
        _put_back(point, {name: _USUAL[name] for name in left})


@contextmanager
def changed_mounts(directories: Sequence[Path], settings: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """Mount the file systems of directories anew with settings, and yield what the kernel then says of the first.

    They are put back at the end. A file system is changed while it is mounted, and nothing has to be closed for it;
    `data` alone needs it unmounted and mounted again, so that no file in it may be open. Raises SettingRefusedError for
    a setting that a file system does not take, and SettingLostError at the end where one is no longer what it was.
    """
    points = [find_mount(directory).point for directory in directories]
    before = [{setting: _read(point, setting) for setting in settings} for point in points]
    try:
        for point in points:
            _write(point, settings)
        in_force = [{setting: _read(point, setting) for setting in settings} for point in points]
        yield dict(in_force[0]) if points else {}
        for point, values in zip(points, in_force, strict=True):
            require_kept(str(point), values, {setting: _read(point, setting) for setting in values})
    finally:
        for point, values in zip(points, before, strict=True):
            _put_back(point, values)


def _put_back(point: Path, settings: Mapping[str, object]) -> None:
    try:
        _write(point, settings)
    except SettingRefusedError as error:  # what was there before cannot be the fault of what was asked for
        raise UserError(str(error)) from error


def _read(point: Path, setting: str) -> object:
    return _SETTINGS[setting].read(find_mount(point).options)


def _write(point: Path, settings: Mapping[str, object]) -> None:
    if not settings:
        return
    options = ",".join(_SETTINGS[name].option(value) for name, value in settings.items())
    changed = [name for name, value in settings.items() if _read(point, name) != value]
    try:
        if any(_SETTINGS[name].needs_new_mount for name in changed):
            _mount_anew(point, options)
        else:
            run_as_root("mount", ["-o", f"remount,{options}", str(point)])
    except _InUseError:
        raise
    except UserError as error:
        raise SettingRefusedError(f"the file system of {point} is not mounted with {options}: {error}") from error
    for name, value in settings.items():
        if (actual := _read(point, name)) != value:
            raise SettingRefusedError(f"{name} of {point} is {actual} after it was mounted with {options}")


def _mount_anew(point: Path, options: str) -> None:
    """Unmount a file system and mount it with options; where that fails, it is mounted as it was."""
    mount = find_mount(point)
    flags = ",".join(flag for flag in _FLAGS if flag in mount.options) or "defaults"
    with _claimed(point), released(point):
        _unmount(point)
        try:
            _await_end(mount)
            run_as_root("mount", ["-o", f"{flags},{options}", mount.source, str(point)])
        except UserError:
            run_as_root("mount", ["-o", flags, mount.source, str(point)])
            raise


def _claimed(point: Path) -> AbstractContextManager[None]:
    """Keep others from bringing up an emulated device meanwhile, who would find it unmounted and mount it."""
    folder = point.parent
    if folder.parent.name != DEVICES_FOLDER:
        return nullcontext()
    return claim_folder(DeviceFolder(folder.name, folder.parent.parent))


class _InUseError(UserError):
    """Somebody uses a file system, whatever its options are."""


def _unmount(point: Path) -> None:
    """Unmount a file system that somebody may look at for a moment; _InUseError: somebody uses it for long."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            run_as_root("umount", [str(point)])
        except UserError as error:
            if "busy" not in str(error):
                raise
            if time.monotonic() > deadline:
                raise _InUseError(f"{error}; `fuser -vm {point}` shows who uses it") from error
            time.sleep(_STEP_S)
        else:
            return


def _await_end(mount: Mount) -> None:
    """Wait until the kernel has let go of a file system that was unmounted.

    A private mount namespace, such as that of a server that is just ending, may have a copy of the mount, and the file
    system would keep its options as long. _InUseError: that takes too long.
    """
    in_kernel = Path("/sys/fs", mount.filesystem, Path(mount.source).resolve().name)
    deadline = time.monotonic() + _PATIENCE_S
    while in_kernel.exists():
        if time.monotonic() > deadline:
            raise _InUseError(f"{mount.source} is still mounted in another mount namespace after {_PATIENCE_S:g} s")
        time.sleep(_STEP_S)
