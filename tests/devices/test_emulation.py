"""Emulated devices on real loop devices."""

import argparse
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from knobscope.devices import bring_up, close_device, command, open_device, take_down
from knobscope.devices.mounts import find_mount
from knobscope.devices.power import shut_down
from knobscope.errors import UserError
from knobscope.processes import find_service_user, supervise
from knobscope.specs import Device, Emulation

pytestmark = pytest.mark.real


def loops_of(directory: Path) -> list[str]:
    listed = subprocess.run(["losetup", "-n", "-O", "NAME,BACK-FILE"], capture_output=True, text=True, check=True)
    return [line.split()[0] for line in listed.stdout.splitlines() if line.split()[1].startswith(str(directory))]


def test_up_twice_is_one_device(tmp_path: Path, emulated: Device) -> None:
    mount = bring_up(emulated, tmp_path)
    assert bring_up(emulated, tmp_path) == mount
    assert len(loops_of(tmp_path)) == 1
    found = find_mount(mount)
    assert (found.point, found.filesystem, found.source) == (mount, "ext4", loops_of(tmp_path)[0])


@pytest.mark.parametrize("mode", [0o711, 0o777])
def test_a_folder_that_a_stranger_made_is_refused(tmp_path: Path, emulated: Device, mode: int) -> None:
    """In a directory for everybody, as /dev/shm is: links in such a folder could lead anywhere."""
    victim, folder = tmp_path / "victim", tmp_path / ".knobscope-devices"
    victim.write_text("precious")
    (folder / emulated.name).mkdir(parents=True)
    (folder / emulated.name / "disk.img").symlink_to(victim)
    folder.chmod(mode)
    if mode == 0o711:
        os.chown(folder, 65534, 65534)
    what = "belongs to user 65534" if mode == 0o711 else "has mode 0777"
    with pytest.raises(UserError, match=f"{what}, expected a directory of user {os.geteuid()}"):
        bring_up(emulated, tmp_path)
    assert victim.read_text() == "precious"
    shutil.rmtree(folder)  # so that the device can be taken down


def test_file_system_has_blocks_of_a_real_device(tmp_path: Path, emulated: Device) -> None:
    assert os.statvfs(bring_up(emulated, tmp_path)).f_bsize == 4096


def test_what_somebody_set_on_the_loop_device_is_undone(tmp_path: Path, emulated: Device) -> None:
    """Requests would be cut, and the kernel would send no flushes."""
    free = subprocess.run(["losetup", "--find"], capture_output=True, text=True, check=True).stdout.strip()
    queue = Path("/sys/block", Path(free).name, "queue")
    (queue / "max_sectors_kb").write_text("64")
    (queue / "write_cache").write_text("write through")
    try:
        bring_up(emulated, tmp_path)
        if loops_of(tmp_path) != [free]:
            pytest.skip("another process took the device that was free")
    finally:
        if loops_of(tmp_path) != [free]:  # it must not keep that for whoever has it now
            (queue / "max_sectors_kb").write_text((queue / "max_hw_sectors_kb").read_text())
            (queue / "write_cache").write_text("write back")
    assert (queue / "max_sectors_kb").read_text() == (queue / "max_hw_sectors_kb").read_text() != "64\n"
    assert (queue / "write_cache").read_text() == "write back\n"


def test_down_leaves_nothing(tmp_path: Path, emulated: Device) -> None:
    with open_device(emulated, tmp_path, "study") as opened:
        (opened.directory / "data").write_bytes(b"x" * 4096)
    assert close_device(emulated, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert loops_of(tmp_path) == []
    assert not take_down(emulated, tmp_path)


def test_directory_can_be_a_device_and_hold_images(tmp_path: Path, emulated: Device) -> None:
    here = Device(name="here", description="a directory", tier="auto", path=".")
    with open_device(here, tmp_path, "study") as below, open_device(emulated, tmp_path, "study") as above:
        assert below.block != above.block


def test_data_survive_a_restart_of_the_machine(tmp_path: Path, emulated: Device) -> None:
    mount = bring_up(emulated, tmp_path)
    (mount / "data").write_text("precious")
    subprocess.run(["umount", str(mount)], check=True)
    subprocess.run(["losetup", "-d", *loops_of(tmp_path)], check=True)
    assert (bring_up(emulated, tmp_path) / "data").read_text() == "precious"


@pytest.mark.parametrize("is_read_only", [False, True], ids=["shut down", "read-only"])
def test_a_file_system_that_failed_is_made_anew(
    tmp_path: Path, emulated: Device, capsys: pytest.CaptureFixture[str], *, is_read_only: bool
) -> None:
    """Its device had an error once: it takes no writes any more, and nothing in it can be removed."""
    with open_device(emulated, tmp_path, "study") as opened:
        (opened.directory / "snapshot.part").mkdir()
        if is_read_only:
            subprocess.run(["mount", "-o", "remount,ro", bring_up(emulated, tmp_path)], check=True)
        else:
            shut_down(opened.directory)
    assert "made anew" not in capsys.readouterr().err
    with open_device(emulated, tmp_path, "study") as opened:
        assert list(opened.directory.iterdir()) == []
        (opened.directory / "snapshot.part").write_text("data")
        os.sync()
    assert "device loop: its file system has failed" in capsys.readouterr().err
    with open_device(emulated, tmp_path, "study") as opened:
        assert (opened.directory / "snapshot.part").read_text() == "data"


def test_device_in_use_does_not_go_down(tmp_path: Path, emulated: Device) -> None:
    with open_device(emulated, tmp_path, "study") as opened:
        with pytest.raises(UserError, match="is in use"):
            take_down(emulated, tmp_path)
        assert opened.directory.is_dir()


@pytest.fixture
def stay(tmp_path: Path) -> Iterator[Callable[[list[Path]], None]]:
    """Starts a command that stays, as another user who gets at some paths below a directory that is closed to it."""
    account = find_service_user()
    if account is None:
        pytest.skip("another user needs root")
    tmp_path.chmod(0o700)
    with ExitStack() as stack:

        def start(paths: list[Path]) -> None:
            command = ["sh", "-c", "echo here; exec sleep 60"]
            process = stack.enter_context(supervise(command, user=account, reach=paths, stdout=subprocess.PIPE))
            stack.callback(process.send_signal, signal.SIGUSR1)
            assert process.stdout is not None
            assert process.stdout.readline() == b"here\n"

        yield start


def test_device_goes_down_while_another_user_works_elsewhere(
    tmp_path: Path, emulated: Device, stay: Callable[[list[Path]], None]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    bring_up(emulated, tmp_path)
    stay([tmp_path / "elsewhere"])
    assert take_down(emulated, tmp_path)
    assert loops_of(tmp_path) == []


def test_device_that_another_user_works_on_does_not_go_down(
    tmp_path: Path, emulated: Device, stay: Callable[[list[Path]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("knobscope.devices.folder._PATIENCE_S", 0.2)
    path = bring_up(emulated, tmp_path)
    for _ in range(3):
        stay([path])
    # A report repeats it for each question that such a device leaves open: it names three of them.
    with pytest.raises(UserError, match=r"namespace it is mounted: \d+ \(python\), .*\d+ \(sleep\).* and \d+ more$"):
        take_down(emulated, tmp_path)


def test_another_size_is_refused_while_the_first_exists(tmp_path: Path, emulated: Device) -> None:
    bring_up(emulated, tmp_path)
    other = emulated.model_copy(update={"emulate": Emulation(image_directory=str(tmp_path), size="128MiB")})
    with pytest.raises(UserError, match=r"64MiB of ext4.*128MiB of ext4.*knobscope devices down loop"):
        bring_up(other, tmp_path)


def test_image_that_cannot_grow_to_its_size_is_refused(tmp_path: Path, emulated: Device) -> None:
    huge = emulated.model_copy(update={"emulate": Emulation(image_directory=str(tmp_path), size="1024TiB")})
    with pytest.raises(UserError, match="MiB free"):
        bring_up(huge, tmp_path)


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp(dir="/var/tmp"))
    directory.chmod(0o777)
    yield directory
    shutil.rmtree(directory)


def test_without_root_the_message_says_what_is_needed(open_to_all: Path, emulated: Device) -> None:
    mine = emulated.model_copy(update={"emulate": Emulation(image_directory=str(open_to_all), size="64MiB")})
    os.seteuid(65534)
    try:
        with pytest.raises(UserError, match=r"needs root.*run as root, or let root call"):
            bring_up(mine, open_to_all)
    finally:
        os.seteuid(0)
    assert loops_of(open_to_all) == []


def test_command_brings_up_and_down(tmp_path: Path, emulated: Device, capsys: pytest.CaptureFixture[str]) -> None:
    shelf = tmp_path / "specs" / "devices"
    shelf.mkdir(parents=True)
    (shelf / "loop.yaml").write_text(
        "name: loop\ndescription: emulated\ntier: auto\nemulate: {image_directory: ., size: 64MiB}\n"
    )
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())

    def call(*arguments: str) -> str:
        args = parser.parse_args(["devices", *arguments, "--root", str(tmp_path)])
        assert args.run(args) == 0
        return capsys.readouterr().out.strip()

    mount = call("up", "loop")
    assert Path(mount).is_mount()
    assert "removed" in call("down", "loop")
    assert not Path(mount).exists()
    assert "was not up" in call("down", "loop")
    with pytest.raises(UserError, match=r"no device .*: loop"):
        call("up", "lop")
