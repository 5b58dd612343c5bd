"""Runs the program of one modelled or delayed device, and removes the device when nobody needs it any more.

A process of its own, so that a study that is killed with -9 leaves neither a loop device nor a mount, nor memory in
use. The program ends with the warden; what a killed warden leaves is mended when the device is brought up again, or
taken down.
"""

import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from knobscope.devices.folder import DeviceFolder, claim_folder
from knobscope.devices.owners import FOREVER, living_owners
from knobscope.devices.program import answering_command
from knobscope.errors import UserError
from knobscope.processes import read_tail
from knobscope.specs.models.device_model import Delay, DeviceModel

_READY = b"ready\n"


def start_warden(folder: DeviceFolder, model: DeviceModel | Delay) -> None:
    """Start the program of a device, with its warden, and wait until it answers; raises UserError."""
    command = answering_command(model, folder.answering, folder.image)
    folder.answering.touch(0o600)
    read_end, write_end = os.pipe()
    with folder.log.open("wb") as log, os.fdopen(read_end, "rb") as answer:
        warden = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, folder.device, str(folder.images), str(write_end), *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(write_end,),
            start_new_session=True,
            cwd="/",
        )
        os.close(write_end)
        if answer.readline() != _READY:
            warden.wait()
            output = read_tail(folder.log).strip()
            raise UserError(f"device {folder.device}: its program did not start: {output or 'it said nothing'}")


def _watch(folder: DeviceFolder, program: "subprocess.Popen[bytes]") -> None:
    """Wait until the program ends or no owner is left; then remove the device, unless somebody else did."""
    ended = os.pidfd_open(program.pid)
    while True:
        owners = living_owners(folder.owners)
        with claim_folder(folder):
            is_over = not living_owners(folder.owners) or program.poll() is not None
            if is_over:
                if _is_ours(folder):
                    folder.remove(force=True)
                return
        _wait([pid for pid, _ in owners if pid != FOREVER], ended)


def _is_ours(folder: DeviceFolder) -> bool:
    """Whether the folder has not been taken down and brought up anew by others meanwhile."""
    return folder.warden.exists() and folder.warden.read_text() == str(os.getpid())


def _wait(owners: list[int], ended: int) -> None:
    """Wait until the program, or one of the owners, ends."""
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    descriptors = []
    try:
        for pid in owners:
            try:
                descriptors.append(os.pidfd_open(pid))
            except ProcessLookupError:
                return
            poll.register(descriptors[-1], select.POLLIN)
        poll.poll()
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def main(device: str, images: str, answer: str, command: list[str]) -> int:
    """Run the program and stay until the device is gone."""
    folder = DeviceFolder(device, Path(images))
    folder.warden.write_text(str(os.getpid()))
    program = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    assert program.stdout is not None  # noqa: S101 - it was asked for
    folder.program.write_text(str(program.pid))
    line = program.stdout.readline()
    with suppress(BrokenPipeError), os.fdopen(int(answer), "wb") as caller:  # killed: what it began is removed below
        caller.write(line)
    if line != _READY:
        return program.wait()
    try:
        _watch(folder, program)
    except UserError as error:
        print(error, file=sys.stderr)
    finally:
        program.terminate()
    return program.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
