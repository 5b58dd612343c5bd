"""The folder of an emulated device, ``<image_directory>/.knobscope-devices/<name>/``, and what is attached to it.

``disk.img`` holds the bytes, ``mount`` is where the file system is mounted, ``state.json`` is written once the image
holds one. A modelled device also has ``answering``, the file over which its program is mounted, ``owners.json``,
``warden`` and ``program`` (process numbers), and ``log``. What is attached and mounted is asked of the kernel each
time.
"""

import os
import select
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from knobscope.devices.mounts import list_mounts
from knobscope.devices.own_directory import hold_directory
from knobscope.devices.privileged import call_helper, run_as_root, unmount_fuse
from knobscope.errors import UserError
from knobscope.processes.view import DEVICES_FOLDER

#: How long a file system that nobody needs any more may stay busy: killed servers take a moment to end.
_PATIENCE_S = 10.0
#: Programs that look at all file systems of a machine, as `df` does, use each of them for a moment.
_GLANCE_S = 2.0
#: Processes that a message names, of those that keep a device.
_MOST_HOLDERS = 3


@dataclass(frozen=True)
class DeviceFolder:
    """Where an emulated device keeps its things."""

    device: str
    images: Path

    @property
    def path(self) -> Path:
        """The folder itself."""
        return self.images / DEVICES_FOLDER / self.device

    @property
    def image(self) -> Path:
        """The bytes of the device."""
        return self.path / "disk.img"

    @property
    def answering(self) -> Path:
        """The file that answers as the modelled device would."""
        return self.path / "answering"

    @property
    def mount(self) -> Path:
        """Where the file system is mounted; for who is not root a link to where the helper mounted it."""
        return self.path / "mount"

    @property
    def state(self) -> Path:
        """What the image was made for."""
        return self.path / "state.json"

    @property
    def owners(self) -> Path:
        """Processes that a modelled device lives for."""
        return self.path / "owners.json"

    @property
    def warden(self) -> Path:
        """Number of the process that removes a modelled device in the end."""
        return self.path / "warden"

    @property
    def program(self) -> Path:
        """Number of the process that answers."""
        return self.path / "program"

    @property
    def log(self) -> Path:
        """What the program of a modelled device complains about."""
        return self.path / "log"

    @property
    def is_mounted(self) -> bool:
        """Whether the file system is mounted."""
        point = self.mount.resolve()  # an old link may lead to where another device is mounted by now
        return _is_mounted(point) and (not self.mount.is_symlink() or point.name == self.find_loop())

    @property
    def is_answering(self) -> bool:
        """Whether the program of a modelled device runs."""
        if not _is_mounted(self.answering):
            return False
        try:
            os.close(os.open(self.answering, os.O_RDONLY))  # a stat may be answered from what the kernel remembers
        except OSError:  # its program is gone, and only the mount has remained
            return False
        return True

    def find_loop(self) -> str | None:
        """Return the loop device on the image or on the answering file, if there is one."""
        for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
            with suppress(OSError):  # it is detached at this moment
                if os.fsdecode(backing.read_bytes()).removesuffix("\n") in (str(self.image), str(self.answering)):
                    return backing.parts[3]
        return None

    def link_mount(self, point: Path) -> None:
        """Make `mount`, an empty directory or an old link, a link to where the file system is mounted."""
        if self.mount.is_symlink():
            self.mount.unlink()
        else:
            self.mount.rmdir()
        self.mount.symlink_to(point)

    def detach(self, *, force: bool = False) -> None:
        """Unmount and detach all; with `force` also while somebody uses it, who then gets I/O errors.

        Raises UserError while somebody uses it, and nothing is detached then.
        """
        if self.is_mounted:
            self._unmount_filesystem(force)
        self._detach_loop(force)
        self._unmount_answering(force)
        with awaiting_end(self.program):  # until then it holds the image
            pass

    def _detach_loop(self, force: bool) -> None:
        """Detach the loop device; the kernel does so when the last program that looks at it has closed it."""
        loop = self.find_loop()
        if loop is None:
            return
        if os.geteuid() == 0:  # the helper's detach themselves
            run_as_root("losetup", ["--detach", f"/dev/{loop}"])
        deadline = time.monotonic() + (1 if force else _PATIENCE_S)
        while self.find_loop() is not None:
            if time.monotonic() > deadline:
                if force:
                    return
                raise UserError(f"device {self.device}: /dev/{loop} is in use {_tell_holders(loop)}")
            time.sleep(0.02)

    def _unmount_answering(self, force: bool) -> None:
        """Unmount the file that answers; the kernel lets go of it a moment after the loop device on it has gone."""
        deadline = time.monotonic() + _PATIENCE_S
        while _is_mounted(self.answering):
            try:
                unmount_fuse(self.answering, lazy=force)
            except UserError as error:
                if "busy" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def remove(self, *, force: bool = False) -> bool:
        """Detach all and remove the folder, data included; False when there was nothing."""
        if not self.path.exists():
            return False
        self.detach(force=force)
        shutil.rmtree(self.path)
        return True

    def _unmount_filesystem(self, force: bool) -> None:
        deadline = time.monotonic() + (_PATIENCE_S if force else _GLANCE_S)
        while True:
            try:
                self._unmount(lazy=False)
            except UserError as error:
                if "busy" not in str(error):
                    raise
                if time.monotonic() < deadline:
                    time.sleep(0.1)
                elif force:
                    self._unmount(lazy=True)
                    return
                else:
                    raise UserError(
                        f"device {self.device} is in use; `fuser -vm {self.mount}` shows by whom; end that, "
                        "then try again"
                    ) from error
            else:
                return

    def _unmount(self, *, lazy: bool) -> None:
        options = ["--lazy"] if lazy else []
        if os.geteuid() == 0:
            run_as_root("umount", [*options, str(self.mount.resolve())])
        else:
            call_helper(["down", *options, str(self.find_loop())])


def _tell_holders(loop: str) -> str:
    """Say who uses a loop device: processes that see it mounted in a mount namespace of their own, or how to ask."""
    number = Path(f"/sys/block/{loop}/dev").read_text().strip()
    holders = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or has no mounts any more
            if any(f"{mount.major}:{mount.minor}" == number for mount in list_mounts(process)):
                holders.append(f"{process.name} ({(process / 'comm').read_text(errors='replace').strip()})")
    if holders:
        more = f" and {len(holders) - _MOST_HOLDERS} more" if len(holders) > _MOST_HOLDERS else ""
        return f"by processes in whose mount namespace it is mounted: {', '.join(holders[:_MOST_HOLDERS])}{more}"
    return f"(`fuser -v /dev/{loop}` shows by whom)"


@contextmanager
def awaiting_end(pid_file: Path) -> Iterator[None]:
    """Wait after the body until the process whose number is in the file has ended; the body may remove the file."""
    try:
        descriptor = os.pidfd_open(int(pid_file.read_text()))
    except (FileNotFoundError, ProcessLookupError):
        yield
        return
    try:
        yield
        select.select([descriptor], [], [], _PATIENCE_S)
    finally:
        os.close(descriptor)


@contextmanager
def claim_folder(folder: DeviceFolder) -> Iterator[None]:
    """Keep other processes from bringing emulated devices of the same image directory up or down meanwhile."""
    if not folder.images.is_dir():
        raise UserError(
            f"device {folder.device}: image_directory {folder.images} is no directory; make it, or name another"
        )
    descriptor = hold_directory(folder.device, folder.images / DEVICES_FOLDER, exclusive=True)
    try:
        yield
    finally:
        if not any((folder.images / DEVICES_FOLDER).iterdir()):
            (folder.images / DEVICES_FOLDER).rmdir()
        os.close(descriptor)


def _is_mounted(point: Path) -> bool:
    return any(mount.point == point for mount in list_mounts())
