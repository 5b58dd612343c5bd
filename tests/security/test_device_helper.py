"""The installed helper for emulated devices does what it is for, for what belongs to its caller, and nothing else."""

import json
import os
import pwd
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from helper_race import fork_helper, load

from knobscope.devices import bring_up, find_block_device, privileged, take_down
from knobscope.devices.program import find_program
from knobscope.devices.queue import restore_queue
from knobscope.errors import UserError
from knobscope.processes import SERVICE_USER
from knobscope.processes.view import _acting_as
from knobscope.specs import Device, Emulation

HELPER = Path(__file__).parents[2] / "setup" / "device-helper.py"

pytestmark = [pytest.mark.real, pytest.mark.skipif(os.geteuid() != 0, reason="sudo is played by root")]


def command(*arguments: str) -> list[str]:
    return ["/usr/bin/python3", "-IBS", str(HELPER), *arguments]


def environment(uid: int | None = None) -> dict[str, str]:
    return {"SUDO_UID": str(pwd.getpwnam(SERVICE_USER).pw_uid if uid is None else uid)}


def call(*arguments: str, uid: int | None = None, prefix: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
    """Call the helper as sudo does, for the service user unless somebody else is named."""
    return subprocess.run(
        [*prefix, *command(*arguments)],
        env=environment(uid),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def attached_images(directory: Path) -> str:
    """Return the names of the images in a directory that are behind loop devices."""
    images = []
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # detached at this moment
            images.append(backing.read_text())
    return "".join(sorted(image for image in images if str(directory) in image))


def eventually(is_true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 30
    while not is_true() and time.monotonic() < deadline:
        time.sleep(0.05)
    return is_true()


@contextmanager
def up(image: Path) -> Iterator[Path]:
    """Have an image of the service user's mounted meanwhile."""
    done = call("up", str(image))
    assert done.returncode == 0, done.stderr
    mount = Path(done.stdout.strip())
    try:
        yield mount
    finally:
        done = call("down", mount.name)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def images(open_directory: Path) -> Path:
    """A directory of the caller's with an image and a mount point."""
    folder = open_directory / "images"
    (folder / "mount").mkdir(parents=True)
    with (folder / "disk.img").open("wb") as image:
        image.truncate(16 << 20)
    subprocess.run(["/sbin/mkfs.ext4", "-q", "-F", str(folder / "disk.img")], check=True)
    for path in (folder, folder / "mount", folder / "disk.img"):
        shutil.chown(path, SERVICE_USER, SERVICE_USER)
    return folder


def test_a_device_goes_up_and_down(images: Path) -> None:
    with up(images / "disk.img") as mount:
        line = next(line for line in Path("/proc/self/mounts").read_text().splitlines() if str(mount) in line)
        assert {"nosuid", "nodev"} <= set(line.split()[3].split(","))
        assert mount.stat().st_uid == pwd.getpwnam(SERVICE_USER).pw_uid
        assert Path("/sys/block", mount.name, "loop/backing_file").read_text().strip() == str(images / "disk.img")
    assert str(mount) not in Path("/proc/self/mounts").read_text()
    assert not attached_images(images)  # it detached itself
    assert call("down", mount.name).returncode == 2


def test_what_belongs_to_others_is_refused(images: Path, open_directory: Path) -> None:
    with up(images / "disk.img") as mount:
        assert call("down", mount.name, uid=65534).returncode == 2
        assert mount.is_mount()
        before = attached_images(open_directory)
        theirs = open_directory / "root.img"
        theirs.write_bytes(bytes(1 << 20))
        theirs.chmod(0o666)  # may be written, and is root's all the same
        (images / "link.img").symlink_to(theirs)
        os.link(images / "disk.img", images / "second.img")
        os.mkfifo(images / "fifo")
        large = images / "large.img"
        with large.open("wb") as file:
            file.truncate(15 << 40)
        for path in (images / "fifo", large):
            shutil.chown(path, SERVICE_USER)
        names = ("link.img", "disk.img", "second.img", "fifo", "mount", ".", "large.img")
        for image in (theirs, *(images / name for name in names), Path("/etc/shadow"), Path("/dev/null")):
            assert call("up", str(image)).returncode != 0, image
        for loop in ("/", "/proc", "..", "loop0/..", "loop999999", "loop01", f"loop{mount.name[4:]}\n", str(mount)):
            assert call("down", loop).returncode == 2, loop
        assert attached_images(open_directory) == before


def test_an_error_in_an_image_does_not_stop_the_machine(images: Path) -> None:
    """An image says what happens then, and the kernel obeys: e.g. that it panics."""
    subprocess.run(["/sbin/tune2fs", "-e", "panic", images / "disk.img"], check=True, capture_output=True)
    with up(images / "disk.img") as mount:
        line = next(line for line in Path("/proc/self/mounts").read_text().splitlines() if str(mount) in line)
        assert "errors=remount-ro" in line


#: Changes the queue of a device, says so, and keeps that until it is killed.
_RUN = """
import sys, time
from pathlib import Path
from knobscope.devices import changed_queue, find_block_device
with changed_queue([find_block_device(Path(sys.argv[1]))], {"nomerges": 2}):
    print("changed", flush=True)
    time.sleep(600)
"""


def test_what_a_killed_run_of_root_left_of_a_queue_is_undone(images: Path) -> None:
    free = Path(subprocess.run(["losetup", "--find"], capture_output=True, text=True, check=True).stdout.strip())
    setting = Path("/sys/block", free.name, "queue/nomerges")
    with subprocess.Popen([sys.executable, "-c", _RUN, str(free)], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "changed\n"
        run.kill()
    assert setting.read_text() == "2\n"
    try:
        with up(images / "disk.img") as mount:
            if mount.name != free.name:
                pytest.skip("another process took the device that was free")
            assert setting.read_text() == "0\n"
        assert not Path("/run/knobscope-queues", f"{free.name}.json").exists()
    finally:
        restore_queue(find_block_device(free))


def test_what_is_inherited_stops_nothing_halfway(images: Path) -> None:
    """Closed outputs, ignored signals, limits of the caller: root raises them, or does nothing where it may not."""
    done = call("up", str(images / "disk.img"), prefix=("sh", "-c", "trap '' CHLD TERM; exec \"$@\" <&- 2>&-", "sh"))
    assert done.returncode == 0
    mount = Path(done.stdout.strip())
    assert mount.is_mount()
    assert call("down", mount.name, prefix=("sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh")).returncode == 0
    assert not attached_images(images)
    limited = call("up", str(images / "disk.img"), prefix=("sh", "-c", 'ulimit -f 0; ulimit -n 12; exec "$@"', "sh"))
    if limited.returncode == 0:
        assert call("down", Path(limited.stdout.strip()).name).returncode == 0
    else:
        assert "not allowed to raise maximum limit" in limited.stderr
    assert not attached_images(images)


@pytest.mark.parametrize("output", [">/dev/full", "| true"])
def test_a_call_whose_output_is_lost_leaves_no_device(images: Path, output: str) -> None:
    """It failed for its caller, who has not learnt where the device is."""
    script = f'set -o pipefail; "$@" {output}'
    lost = call("up", str(images / "disk.img"), prefix=("bash", "-c", script, "bash"))
    assert lost.returncode == 1
    assert not attached_images(images)


def test_a_helper_killed_at_any_moment_leaves_nothing_that_stays(images: Path) -> None:
    """What it has mounted by then can be taken down; a loop device goes with it."""
    rng = random.Random(20261127)
    folder = Path("/run/.knobscope-devices", str(pwd.getpwnam(SERVICE_USER).pw_uid))
    for _ in range(25):
        helper = subprocess.Popen(command("up", str(images / "disk.img")), env=environment(), stdout=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 0.15))
        helper.kill()
        helper.wait()
        for point in folder.glob("loop*") if folder.exists() else ():
            backing = Path("/sys/block", point.name, "loop/backing_file")
            if point.is_mount() and str(images) in backing.read_text():  # not of another call of the tests
                done = call("down", point.name)
                assert done.returncode == 0, done.stderr
        assert eventually(lambda: not attached_images(images))


def test_only_root_holds_the_lock_of_a_user(images: Path) -> None:
    with up(images / "disk.img") as mount:
        opening = f"import os; os.open({str(mount.parent)!r}, os.O_RDONLY)"
        done = subprocess.run(
            ["/usr/bin/python3", "-c", opening], user=SERVICE_USER, capture_output=True, text=True, check=False
        )
        assert "PermissionError" in done.stderr
        assert mount.parent.stat().st_uid == 0


@pytest.mark.parametrize("flips", [500, pytest.param(10_000, marks=pytest.mark.long)])
def test_flipped_links_lead_nowhere(open_directory: Path, flips: int) -> None:
    """A caller flips links to root's files and mounts while `up` and `down` work."""
    open_directory.chmod(0o755)
    race = Path(__file__).with_name("helper_race.py")
    done = subprocess.run(
        [
            *("unshare", "--mount", "--propagation", "private", "/usr/bin/python3", "-I"),
            *(race, HELPER, open_directory, str(flips)),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert min(found["flips"]) >= flips
    assert found["is_canary_as_before"]
    assert found["left"] == []
    (done_up, failed_up, *_), (done_down, failed_down, _, _) = found["outcomes"]["up"], found["outcomes"]["down"]
    assert done_up == done_down > 0
    assert failed_up > 0  # the attack was a real one
    assert failed_down == 0
    assert found["outcomes"]["up"][3] == found["outcomes"]["down"][3] == 0  # tracebacks


@pytest.fixture
def small_device(open_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Device:
    """A device that a user brings up through the helper, with root in the place of sudo."""
    open_directory.chmod(0o777)
    tmp_path.chmod(0o755)
    monkeypatch.setattr(privileged, "find_sudo", lambda: "sudo")
    monkeypatch.setattr(privileged, "_run", call_as_sudo)
    emulation = Emulation(image_directory=str(open_directory), size="64MiB")
    return Device(name="small", description="an image", tier="auto", emulate=emulation)


def test_a_user_brings_an_emulated_device_up_and_down(
    small_device: Device, open_directory: Path, tmp_path: Path
) -> None:
    with _acting_as(pwd.getpwnam(SERVICE_USER)):
        mount = bring_up(small_device, tmp_path)
        assert mount.is_symlink()
        (mount / "file").write_text("written by its owner")
        assert bring_up(small_device, tmp_path) == mount
        with (mount / "file").open(), pytest.raises(UserError, match="is in use"):
            take_down(small_device, tmp_path)
        point = mount.resolve()
        assert take_down(small_device, tmp_path)
        assert not mount.is_symlink()
    assert not point.exists()
    assert not attached_images(open_directory)


def test_an_image_is_not_mounted_twice(small_device: Device, open_directory: Path, tmp_path: Path) -> None:
    """A helper that is killed after it mounted an image leaves it mounted, and nobody has linked to it."""
    with _acting_as(pwd.getpwnam(SERVICE_USER)):
        link = bring_up(small_device, tmp_path)
        link.unlink()
        link.mkdir()
        bring_up(small_device, tmp_path)
        assert attached_images(open_directory).count(str(open_directory)) == 1
        assert take_down(small_device, tmp_path)
    assert not attached_images(open_directory)


@pytest.mark.skipif(shutil.which("fusermount3") is None, reason="needs fusermount3 (fuse3)")
def test_an_image_behind_fuse_goes_up_and_down(images: Path) -> None:
    """The answering file of a modelled device: root itself may not look at it."""
    answering, device = images / "answering", images / "fuse"
    answering.touch()
    shutil.chown(answering, SERVICE_USER)
    os.mknod(device, 0o020666, os.makedev(10, 229))  # not every machine lets users open /dev/fuse
    device.chmod(0o666)
    program = find_program("delayed")
    rates = [f"{name}=1000" for name in ("read", "write", "flush")]
    script = (
        'mount --bind "$1" /dev/fuse; export SUDO_UID=$(id -u "$2"); cd /; helper="/usr/bin/python3 -IBS $3"\n'
        'runuser -u "$2" -- "$4" "$5" "$6" $7 & sleep 0.5; until mountpoint -q "$5" 2>/dev/null || '
        'grep -qF "$5" /proc/self/mounts; do sleep 0.05; done\n'
        'point=$($helper up "$5") && mountpoint "$point" && $helper down "${point##*/}"; code=$?\n'
        'kill %1; umount -l "$5"; wait; exit $code'
    )
    names = (device, SERVICE_USER, HELPER, program, answering, images / "disk.img", " ".join(rates))
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "bash", "-c", script.replace("\\n", "\n"), "bash", *names],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "is a mountpoint" in done.stdout


def call_as_sudo(words: list[str]) -> str:
    """Run a program as the user, and the helper as root for that user."""
    user = os.geteuid()
    if words[0] != "sudo":
        return subprocess.run(words, user=user, check=True, capture_output=True, text=True).stdout.strip()
    os.seteuid(0)
    try:
        done = call(*words[3:], uid=user)
    finally:
        os.seteuid(user)
    if done.returncode != 0:
        raise UserError(done.stderr)
    return done.stdout.strip()


def test_only_sudo_may_call_it() -> None:
    for environment in ({}, {"SUDO_UID": "0"}, {"SUDO_UID": "-1"}, {"SUDO_UID": "999999999999"}, {"SUDO_UID": "x"}):
        done = subprocess.run(
            ["/usr/bin/python3", "-IBS", str(HELPER), "down", "loop0"],
            env=environment,
            capture_output=True,
            check=False,
        )
        assert done.returncode == 2


def test_nonsense_gets_a_sentence(images: Path) -> None:
    """No traceback whatever is asked; loops and mounts stay as they were."""
    rng = random.Random(20261122)
    words = ["up", "down", "--lazy", "loop0", "loop99999", "loop-1", "mount", "umount", "/", "/etc", "-", "--"]
    words += ["", "/dev/loop99999", "/dev/sda", "../x", "\udcff", "a" * 5000, "/proc/self/fd/0"]
    words += [str(images), str(images / "absent.img"), str(images / "mount")]
    helper, uid = load(str(HELPER)), pwd.getpwnam(SERVICE_USER).pw_uid
    for _ in range(60):
        arguments = rng.choices(words, k=rng.randrange(7))
        code, output = fork_helper(helper, uid, arguments)
        assert code in (1, 2), arguments  # 3: a traceback
        assert output == "", arguments
    assert str(images) not in Path("/proc/self/mounts").read_text()
