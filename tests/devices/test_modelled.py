"""Modelled devices, real: FUSE, loop device, file system. Latencies are long enough to be seen on a busy machine."""

import json
import os
import re
import signal
import sqlite3
import statistics
import struct
import subprocess
import sys
import time
from contextlib import closing, suppress
from itertools import islice
from pathlib import Path

import pytest
from direct import find_shortest, make_file, time_flushes, time_reads, time_writes
from modelled import MakeDevice, folder_of
from waiting import wait_until

from knobscope.devices import bring_up, take_down
from knobscope.devices.emulation import find_warden
from knobscope.devices.folder import DeviceFolder
from knobscope.devices.mounts import find_mount, list_mounts
from knobscope.errors import UserError
from knobscope.processes import list_tree
from knobscope.specs import Device
from knobscope.stages.remeasure.properties import layered_devices

pytestmark = pytest.mark.real


def leftovers(folder: DeviceFolder) -> list[str]:
    loops = []
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        with suppress(OSError):  # detached at this moment
            loops.append(file.read_text())
    mounts = [str(mount.point) for mount in list_mounts()]
    return [
        *(text for text in [*loops, *mounts] if text.startswith(str(folder.path))),
        *(["folder"] if folder.path.exists() else []),
    ]


def median_of_flushes(file: Path, length: int) -> float:
    """Return the median of some flushes: now and then one is shorter, which joins that of another program's sync()."""
    with closing(time_flushes(file, length)) as latencies:
        return statistics.median(islice(latencies, 40))


def test_requests_are_answered_when_the_model_says(make_device: MakeDevice) -> None:
    file = make_file(bring_up(make_device(), Path("/")))
    assert 0.020 <= find_shortest(time_reads(file), 0.026) < 0.026
    assert 0.005 <= find_shortest(time_writes(file), 0.0075) < 0.0075
    assert find_shortest(time_flushes(file), 0.075) < 0.075
    assert median_of_flushes(file, 4096) > 0.044
    assert find_shortest(time_flushes(file, length=32768), 0.05) < 0.05  # a whole unit: nothing to fill
    assert median_of_flushes(file, 32768) > 0.036


def test_what_if_device_differs_in_one_property_only(make_device: MakeDevice) -> None:
    file = make_file(bring_up(make_device("whatif", flush="0us", fill="0us"), Path("/")))
    assert find_shortest(time_flushes(file), 0.010) < 0.010
    assert 0.020 <= find_shortest(time_reads(file), 0.026) < 0.026
    assert 0.005 <= find_shortest(time_writes(file), 0.0075) < 0.0075


def run_fio(file: Path, *options: str) -> float:
    """Return operations per second of 4 KiB each, as fio counts them."""
    command = ["fio", "--name=x", f"--filename={file}", "--bs=4k", "--direct=1", "--ioengine=libaio", "--time_based"]
    command += ["--size=4M", "--runtime=1500ms", "--output-format=json", *options]
    job = json.loads(subprocess.run(command, check=True, capture_output=True, text=True, cwd=file.parent).stdout)[
        "jobs"
    ][0]
    return float(job["read"]["iops"] + job["write"]["iops"])


@pytest.mark.long
def test_fio_gains_what_a_layer_above_the_drive_promises(make_device: MakeDevice) -> None:
    plain = make_device()
    layers = {"itself": plain, **layered_devices(plain)}
    rates: dict[str, dict[str, float]] = {}
    for name, device in layers.items():
        file = make_file(bring_up(device, Path("/")))
        rates[name] = {
            "flushed": run_fio(file, "--rw=randwrite", "--fdatasync=1"),
            "one": run_fio(file, "--rw=randread", "--iodepth=1"),
            "many": run_fio(file, "--rw=randread", "--iodepth=16"),
        }
        take_down(device, Path("/"))
    # 5 ms for the write and 60 ms for its flush; merged, 7 of 8 flushes take 5 ms, and one 40 ms, which fills nothing.
    assert rates["merged"]["flushed"] / rates["itself"]["flushed"] == pytest.approx(65 / 14.4, rel=0.25)
    assert rates["merged"]["one"] == pytest.approx(rates["itself"]["one"], rel=0.15)
    # Four channels of 20 ms each: spread, one request reaches what four do otherwise, and many reach no more.
    assert rates["spread"]["one"] / rates["itself"]["one"] == pytest.approx(4, rel=0.25)
    assert rates["spread"]["many"] == pytest.approx(rates["itself"]["many"], rel=0.15)


def test_kernel_takes_it_for_a_device_of_its_kind(make_device: MakeDevice) -> None:
    flash = make_device()
    bring_up(flash, Path("/"))
    queue = Path("/sys/block", str(folder_of(flash).find_loop()), "queue")
    assert (queue / "rotational").read_text() == "0\n"
    assert (queue / "write_cache").read_text() == "write back\n"  # so that flushes reach it


def test_the_program_that_answers_is_known_as_ours(make_device: MakeDevice) -> None:
    device = make_device()
    bring_up(device, Path("/"))
    pids = list_tree([warden]) if (warden := find_warden(device, Path("/"))) else []
    assert int(folder_of(device).program.read_text()) in pids


def test_nothing_is_left_when_it_is_taken_down(make_device: MakeDevice) -> None:
    device = make_device()
    bring_up(device, Path("/"))
    warden = int(folder_of(device).warden.read_text())
    assert take_down(device, Path("/"))
    assert leftovers(folder_of(device)) == []
    assert wait_until(lambda: not Path("/proc", str(warden), "exe").exists())


_OWNER = """
import sys, time
from pathlib import Path
from knobscope.devices import bring_up
from knobscope.specs import Device
from knobscope.stages.remeasure.properties import layered_devices
from knobscope.specs.models.transport import Transport, write_transport
device = Device.model_validate_json(sys.stdin.read())
print(bring_up(device, Path("/")), flush=True)
time.sleep(600)
"""


def start_owner(device: Device, *, is_awaited: bool = True) -> "subprocess.Popen[str]":
    owner = subprocess.Popen(
        [sys.executable, "-c", _OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert owner.stdin is not None and owner.stdout is not None
    owner.stdin.write(device.model_dump_json())
    owner.stdin.close()
    assert not is_awaited or owner.stdout.readline().strip() == str(folder_of(device).mount)
    return owner


def test_it_goes_when_its_owner_is_killed(make_device: MakeDevice) -> None:
    device = make_device()
    owner = start_owner(device)
    user = subprocess.Popen(["sleep", "600"], cwd=folder_of(device).mount)  # a server that takes a moment to end
    owner.kill()
    owner.wait()
    time.sleep(0.5)
    user.kill()
    user.wait()
    assert wait_until(lambda: leftovers(folder_of(device)) == []), leftovers(folder_of(device))


@pytest.mark.parametrize("moment", ["warden", pytest.param("mount", marks=pytest.mark.long)])
def test_nothing_is_left_of_a_process_group_that_is_killed_bringing_it_up(make_device: MakeDevice, moment: str) -> None:
    """Before its program answers, or while mount reads from the slow device."""
    device = make_device(read="200ms")
    folder = folder_of(device)
    owner = start_owner(device, is_awaited=False)
    assert wait_until(lambda: any(is_at(moment, child) for child in list_children(owner.pid)))
    os.killpg(owner.pid, signal.SIGTERM)
    owner.wait()
    assert wait_until(lambda: leftovers(folder) == []), leftovers(folder)


#: File of a process, and what it begins with; 165 is mount on x86-64.
_MOMENTS = {"warden": ("cmdline", r".*knobscope\.devices\.warden"), "mount": ("syscall", "165 ")}


def is_at(moment: str, pid: str) -> bool:
    name, pattern = _MOMENTS[moment]
    try:
        return re.match(pattern, Path("/proc", pid, name).read_text()) is not None
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return False


def list_children(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def test_it_stays_while_another_owner_lives(make_device: MakeDevice) -> None:
    device = make_device()
    first, second = start_owner(device), start_owner(device)
    first.kill()
    first.wait()
    time.sleep(0.5)
    assert folder_of(device).is_mounted
    second.kill()
    second.wait()
    assert wait_until(lambda: leftovers(folder_of(device)) == []), leftovers(folder_of(device))


def test_three_at_once(make_device: MakeDevice) -> None:
    devices = [make_device(f"three{number}", read=f"{20 * number}ms") for number in range(1, 4)]
    files = [make_file(bring_up(device, Path("/")), 1 << 20) for device in devices]
    for number, file in enumerate(files, start=1):
        assert 0.020 * number <= find_shortest(time_reads(file), 0.023 * number) < 0.023 * number
    assert len({folder_of(device).find_loop() for device in devices}) == 3


def test_killed_warden_is_mended_and_data_stay(make_device: MakeDevice) -> None:
    device = make_device()
    mount = bring_up(device, Path("/"))
    (mount / "precious").write_text("data")
    os.sync()
    os.kill(int(folder_of(device).warden.read_text()), signal.SIGKILL)
    assert wait_until(lambda: not folder_of(device).is_answering)
    assert (bring_up(device, Path("/")) / "precious").read_text() == "data"


def test_full_backing_store_is_an_error_and_not_the_end(make_device: MakeDevice, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m,mode=755", "none", str(small)], check=True)
    device = make_device("full", small, read="0us", write="0us", flush="0us", fill="0us")
    try:
        bring_up(device, Path("/"))
        (small / "ballast").write_bytes(bytes(1 << 20) * 130)
        written = subprocess.run(
            ["dd", "if=/dev/zero", f"of={folder_of(device).mount}/new", "bs=1M", "count=100", "oflag=direct"],
            capture_output=True,
            text=True,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
        assert "No space left on device" in written.stderr
        # The device still answers, whether or not its file system went on without its journal.
        node = find_mount(folder_of(device).mount).source
        copy = ["dd", "bs=4096", "count=1", "status=none"]
        subprocess.run([*copy, f"if={node}", "of=/dev/null", "iflag=direct"], check=True)
        (small / "ballast").unlink()
        subprocess.run([*copy, f"of={node}", "if=/dev/zero", "oflag=direct", "seek=20000"], check=True)
    finally:
        take_down(device, Path("/"))
        assert wait_until(lambda: subprocess.run(["umount", str(small)], check=False).returncode == 0)


def test_program_that_does_not_start_says_why(make_device: MakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as other:
        other.setenv("KNOBSCOPE_DEVMODEL", "/surely/not/here")
        with pytest.raises(UserError, match=r"not built: no /surely/not/here/devmodel \(from KNOBSCOPE_DEVMODEL\)"):
            bring_up(make_device(), Path("/"))


_WRITER = """
import mmap, os, random, struct, sys
file, acknowledged, seed, blocks = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
draw = random.Random(seed)
device = os.open(file, os.O_RDWR | os.O_DIRECT)
notes = mmap.mmap(os.open(acknowledged, os.O_RDWR), 8 * blocks)
buffer = mmap.mmap(-1, 4096)
for number in range(1, 1 << 60):
    block = draw.randrange(blocks)
    buffer[:] = struct.pack("<QQ", number, block) * 256
    os.pwritev(device, [buffer], 4096 * block)
    notes[8 * block : 8 * block + 8] = struct.pack("<Q", number)
"""


def test_no_answered_write_is_lost_when_the_writer_is_killed(make_device: MakeDevice, tmp_path: Path) -> None:
    """Each block says which write it is; one that was answered before the kill must be there, whole."""
    device = make_device("kept", read="100us", write="50us", flush="200us", fill="0us")
    file = make_file(bring_up(device, Path("/")), 4096 * 64)
    for kill in range(int(os.environ.get("KNOBSCOPE_KILLS", "3"))):
        acknowledged = tmp_path / f"acknowledged-{kill}"
        acknowledged.write_bytes(bytes(8 * 64))
        subprocess.run(["dd", "if=/dev/zero", f"of={file}", "bs=4096", "count=64", "conv=notrunc"], check=True)
        writer = subprocess.Popen([sys.executable, "-c", _WRITER, str(file), str(acknowledged), str(kill), "64"])
        time.sleep(0.7 + 0.05 * kill)
        writer.kill()
        writer.wait()
        check_blocks(file, acknowledged)


def check_blocks(file: Path, acknowledged: Path) -> None:
    answered = struct.unpack("<64Q", acknowledged.read_bytes())
    assert sum(answered) > 0
    content = file.read_bytes()
    for block, number in enumerate(answered):
        pieces = {content[start : start + 16] for start in range(4096 * block, 4096 * (block + 1), 16)}
        assert len(pieces) == 1, f"block {block} is torn"
        found, where = struct.unpack("<QQ", pieces.pop())
        assert where == block or found == 0
        assert found >= number, f"block {block} has write {found}; {number} was answered"


def test_fio_finds_its_checksums_after_a_load_was_killed(make_device: MakeDevice) -> None:
    device = make_device("verified", read="100us", write="50us", flush="200us", fill="0us")
    mount = bring_up(device, Path("/"))
    job = ["fio", "--direct=1", "--ioengine=libaio", "--thread", "--iodepth=16", "--size=16m", "--bsrange=4k-64k"]
    kept = [
        *job,
        "--verify_state_save=0",
        "--verify_fatal=1",
        "--name=kept",
        f"--filename={mount}/kept",
        "--rw=randwrite",
        "--verify=crc32c",
    ]
    load = [*job, "--name=load", f"--filename={mount}/load", "--rw=randwrite", "--fdatasync=8", "--time_based=1"]
    for kill in range(int(os.environ.get("KNOBSCOPE_KILLS", "2"))):
        seed = f"--randseed={kill}"
        subprocess.run([*kept, seed, "--do_verify=0"], check=True, stdout=subprocess.DEVNULL)
        killed = subprocess.Popen([*load, "--runtime=60s"], stdout=subprocess.DEVNULL)
        time.sleep(1.0 + 0.05 * kill)
        killed.kill()
        killed.wait()
        subprocess.run([*kept, seed, "--verify_only"], check=True, stdout=subprocess.DEVNULL)


_INSERTER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode=WAL"); connection.execute("PRAGMA synchronous=FULL")
connection.execute("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, filler BLOB)")
for _ in range(1 << 60):
    row = connection.execute("INSERT INTO t (filler) VALUES (randomblob(900)) RETURNING id").fetchall()[0][0]
    print(row, flush=True)
"""


def test_database_is_whole_after_its_process_was_killed(make_device: MakeDevice) -> None:
    device = make_device("database", read="100us", write="50us", flush="500us", fill="0us")
    database = bring_up(device, Path("/")) / "test.db"
    committed: list[int] = []
    for _ in range(int(os.environ.get("KNOBSCOPE_KILLS", "3"))):
        inserter = subprocess.Popen([sys.executable, "-c", _INSERTER, str(database)], stdout=subprocess.PIPE, text=True)
        assert inserter.stdout is not None
        committed.append(int(inserter.stdout.readline()))
        time.sleep(0.7)
        inserter.kill()
        committed += [int(line) for line in inserter.stdout.read().split()]
        inserter.wait()
        connection = sqlite3.connect(database)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        stored = {row for (row,) in connection.execute("SELECT id FROM t")}
        connection.close()
        assert set(committed) <= stored
    assert len(committed) > 10
