"""The layout of a run: parts of its data on the devices that its configuration names, and where they really lie."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from knobscope.devices import OpenDevice, make_scattering_directory
from knobscope.processes import find_service_user, make_shared_directory
from knobscope.servers import Configuration, Instance, PartHome, devices_of_part, move_part, settle_data
from knobscope.specs import WITH_DATA, Dbms, part_knob
from knobscope.stages.measure.window import share_of_window
from knobscope.stages.prepare import Snapshot
from knobscope.tables import LayoutIoRow
from knobscope.watch import FileTree, Profile, read_program_files, read_tree


@contextmanager
def moved_parts(
    dbms: Dbms,
    configuration: Configuration,
    snapshot: Snapshot,
    data: Path,
    devices: Mapping[str, OpenDevice],
    *,
    cold: bool,
) -> Iterator[dict[str, PartHome]]:
    """Move parts of copied data to the devices of a configuration; yields knob -> home of what is not in the data.

    Directories on other devices are removed at the end; those on the data's device go with the data.
    """
    run = data.parent
    folders: set[Path] = set()
    homes: dict[str, PartHome] = {}
    with ExitStack() as stack:
        for name, part in dbms.layout_parts.items():
            device = configuration[part_knob(name)]
            if device == WITH_DATA and part.load is None:
                continue
            folder = run if device == WITH_DATA else devices[str(device)].directory / "runs" / run.name
            if device != WITH_DATA and folder not in folders:
                stack.enter_context(_made_directory(folder))
                devices[str(device)].require_free(_size(snapshot.directory), f"part {name} of the data")
            folders.add(folder)
            homes[part_knob(name)] = move_part(name, part, data, folder / name, snapshot.directory)
        for directory in [*(home.directory for home in homes.values()), *([data] if homes else [])]:
            settle_data(directory, cold=cold)
        yield homes


@contextmanager
def _made_directory(path: Path) -> Iterator[None]:
    shutil.rmtree(path, ignore_errors=True)
    make_scattering_directory(path.parent)
    make_shared_directory(path, find_service_user())
    try:
        yield
    finally:
        shutil.rmtree(path)


def _size(directory: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in directory.rglob("*"))


def find_layout(
    instance: Instance, settings: Mapping[str, str], data_device: Path, devices: Mapping[str, OpenDevice]
) -> dict[str, str]:
    """Return knob -> device for the parts of a running server, as their files lie; several devices are all named.

    `settings`: as the server answers them; `data_device`: a directory on the device of the data. A part that is nowhere
    to be found is missing.
    """
    names = {data_device.stat().st_dev: WITH_DATA}
    names |= {device.directory.stat().st_dev: name for name, device in devices.items()}
    layout = {}
    for name, part in instance.dbms.layout_parts.items():
        knob = part_knob(name)
        answer = settings.get(part.setting) if part.setting else None
        numbers = devices_of_part(part, instance.data, instance.homes.get(knob), answer)
        if numbers:
            layout[knob] = " and ".join(sorted(names.get(number, "another device") for number in numbers))
    return layout


def read_trees(instance: Instance) -> list[FileTree]:
    """Return the files of the data directory, those of the parts that lie elsewhere, and those of running programs."""
    homes = instance.homes.values()
    trees = [read_tree(instance.data), *(read_tree(home.directory, home.prefix) for home in homes)]
    return [*trees, *read_program_files(trees)]


def group_trees(trees: Sequence[FileTree], devices: Mapping[str, OpenDevice]) -> dict[str | None, list[FileTree]]:
    """Return trees by the device of the layout that they lie on; None: on that of the data."""
    numbers = {f"{device.block.major}:{device.block.minor}": name for name, device in devices.items()}
    groups: dict[str | None, list[FileTree]] = {None: [], **{name: [] for name in devices}}
    for tree in trees:
        groups[numbers.get(tree.device)].append(tree)
    return groups


def list_layout_io(profile: Profile, data_device: str, window_s: float) -> list[LayoutIoRow]:
    """Return the rows of table `layout_io`: what each device of a layout was asked for; none without a layout."""
    elsewhere: Mapping[str, Profile] = profile.get("elsewhere", {})
    profiles = {data_device: profile, **elsewhere} if elsewhere else {}
    return [
        {
            "device": name,
            "op": row["op"],
            "requests": row["requests"],
            "bytes": row["bytes"],
            "mean_depth": device_profile["mean_depth"],
            "busy_share": share_of_window(device_profile["busy_share"], profile, window_s),
        }
        for name, device_profile in profiles.items()
        for row in device_profile["io_profile"]
    ]
