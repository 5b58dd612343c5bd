"""What the device of a server can do, from a profile, and how much of it the server uses."""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from knobscope.commands.attach.data import DataPlace
from knobscope.commands.attach.program import Running
from knobscope.devices import find_block_device, identify_block, open_locked
from knobscope.durable_files import DamagedFileError, write_sealed
from knobscope.errors import UserError
from knobscope.specs import Device
from knobscope.stages.characterise.profile import characterise_device
from knobscope.stages.detect import WatchedProfile, judge_profile
from knobscope.tables import DeviceProfile, read_document
from knobscope.tables.detection import FindingRow
from knobscope.text.formats import format_micros, format_share
from knobscope.watch import Profile

#: Never the depth: the rule does not know how many requests the server's clients could have outstanding.
_HELD_BY = {
    "flush": "its flushes hold it back",
    "units": "writes that fill units of the device in part hold it back",
    "requests": "the kind of its requests holds it back: their size, order, or mix of reads and writes",
}

#: Why a rule that knows no waits cannot judge -> what this window says instead.
_TOLD_BY_WAITS = dict.fromkeys(("computing", "hidden", "no_cpu"), "where its threads wait is shown above")
_TOLD = {"profile_too_low": "so the profile is too low: measure it again (`--characterise`)"}


def find_profile(named: Path | None, data: DataPlace) -> DeviceProfile | None:
    """Return the profile that was named, else the latest below results/ that was measured on this device.

    The kernel gives a name such as sdb or loop0 to whatever is attached next, so a name alone identifies none.
    """
    if named is not None:
        try:
            return read_document(named, DeviceProfile)
        except DamagedFileError as damaged:  # not to be put aside: it may be any file of the user
            raise UserError(f"--profile: {damaged}; expected what `knobscope characterise --out` writes") from damaged
    identity = identify_block(data.block)
    profiles = _list_profiles(Path("results"))
    matches = [profile for profile in profiles if identity and profile.get("block_identity") == identity]
    return max(matches, key=lambda profile: str(profile["measured_at"]), default=None)


def _list_profiles(results: Path) -> Iterator[DeviceProfile]:
    for path in results.glob("*/devices/*.json"):
        try:
            yield read_document(path, DeviceProfile)
        except DamagedFileError as damaged:
            print(f"knobscope: passed over: {damaged}", file=sys.stderr)


def measure_device(directory: Path, data: DataPlace, out: Path | None) -> DeviceProfile:
    """Measure the device of a server with fio, on a scratch file. UserError: the directory lies on another one."""
    block = find_block_device(directory)
    if block != data.block:
        raise UserError(f"--characterise: {directory} lies on {block.name}; expected a directory on {data.block.name}")
    print(
        f"knobscope: measuring {block.name} with fio for about a minute, on a file in {directory}: the server and "
        "everyone else on this device will be slower meanwhile",
        file=sys.stderr,
    )
    device = Device(
        name=block.name, description="device of a running server", tier="auto", path=str(directory.resolve())
    )
    with open_locked([device], Path(), "attach") as (opened,):
        profile = characterise_device(opened, "quick")
    if out is not None:
        write_sealed(out, profile)
    return profile


def judge_window(running: Running, profile: Profile, unit: int, device: DeviceProfile | None) -> list[FindingRow]:
    """Return what the rules say that need one profile; nothing where the device has none, or there was no BPF."""
    if device is None or profile["monitor"] != "bpf":
        return []
    watched = cast(WatchedProfile, {**profile, "command": [running.name], "unit": unit})
    return judge_profile(watched, device)


def describe_finding(finding: FindingRow, device: DeviceProfile, *, tells_waits: bool) -> str:
    """Return a finding about a server in a sentence; `tells_waits`: what its threads wait for is shown."""
    evidence: Mapping[str, Any] = json.loads(finding["evidence"] or "{}")
    instead = {**_TOLD_BY_WAITS, **_TOLD} if tells_waits else _TOLD
    if not evidence or (finding["verdict"] == "insufficient" and evidence["obstacle"] not in instead):
        return str(finding["sentence"])
    source = f"its profile of {str(device['measured_at'])[:10]}"
    used = (
        f"The server keeps {device['block_device']} busy for {format_share(evidence['busy_share'])} of the time "
        f"and uses {format_share(evidence['used_share'])} of its capability, by {source}"
    )
    if finding["verdict"] == "insufficient":
        return f"{used}; {instead[evidence['obstacle']]}."
    if finding["verdict"] == "none":
        return f"{used}: no mismatch."
    flush = f" of {format_micros(evidence['flush_us'])}" if evidence["held_by"] == "flush" else ""
    return f"{used}; {_HELD_BY[evidence['held_by']]}{flush}."
