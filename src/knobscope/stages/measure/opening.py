"""Everything that runs of a case need, opened and closed together: device, its lock, the watch."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

from knobscope.devices import OpenDevice, open_device, open_locked
from knobscope.errors import UserError
from knobscope.identity import require_same_programs
from knobscope.specs import Case, StudySpecs, Value, with_filesystem
from knobscope.stages.measure.block import Measurer
from knobscope.stages.measure.care import DeviceCare
from knobscope.stages.measure.progress import BlockProgress
from knobscope.stages.measure.run import Bench
from knobscope.stages.measure.store import RunStore
from knobscope.stages.prepare import DiskRoom, remove_leftovers
from knobscope.tables import DeviceProfile, read_document
from knobscope.watch import SeveralWatch, Watch, open_watch

#: What alignment is counted by on a device that prefers no size, in bytes: the page.
_NO_PREFERENCE = 4096


@contextmanager
def open_measurer(
    specs: StudySpecs,
    case: Case,
    root: Path,
    profile: Path,
    store_directory: Path,
    progress: BlockProgress,
    traces: Path | None = None,
) -> Iterator[Measurer]:
    """Yield what measures runs of a case; its devices belong to it alone until the end.

    `profile`: that of the data's device; those of a layout's other devices lie next to it.

    `traces`: directory for a trace of every run, a directory each.
    """
    require_same_programs(specs, case)
    facts = read_document(profile, DeviceProfile)
    workload = specs.workloads[case.workload]
    with ExitStack() as stack:
        names = [case.device, *specs.layout_devices(case.dbms)]
        devices = [specs.devices[name] for name in names]
        device, *others = stack.enter_context(open_locked(devices, root, specs.study.name))
        layout = dict(zip(names[1:], others, strict=True))
        _require_different(case.device, device, layout)
        opened = {case.device: device, **layout}
        blocks = [opened_device.block for opened_device in opened.values()]
        _require_root(specs)
        watch = stack.enter_context(_open_watches(specs, device, layout, profile, traces))
        remove_leftovers(device.directory)
        room = _open_room(specs, device, root)
        room.require(room.largest_copy(), "a copy of the loaded data")
        generator = specs.generators.get(workload.generator)
        dbms = specs.dbms[case.dbms]
        bench = Bench(
            dbms,
            workload,
            device.directory,
            watch,
            generator,
            room,
            traces,
            case.device,
            blocks,
            layout,
            specs.study.client,
            "recovery" in specs.study.measure,
            "statements" in specs.study.measure,
            _unit(profile),
            _list_helpers(opened.values()),
        )
        store = RunStore(store_directory)
        if watch.reason is not None and store.was_watched_by_bpf:
            raise UserError(
                f"BPF watched earlier runs of this study, and is not available now ({watch.reason}); call again when "
                f"it is, or remove {store_directory} to measure all runs without it"
            )
        if watch.reason is not None and store.is_empty:
            print(watch.describe_fallback(), file=sys.stderr)  # once per study, not per block
        for probe, reason in watch.missing_probes.items():
            print(f"knobscope: {probe} cannot be watched ({reason})", file=sys.stderr)
        _remove_parts(layout)  # of a run that was killed

        def on_filesystem(settings: Mapping[str, Value]) -> Bench:
            """Return the bench on a device like this one whose file system is made with settings, until the end."""
            variant = with_filesystem(specs.devices[case.device], settings)
            if variant is specs.devices[case.device]:
                return bench
            opened = stack.enter_context(open_device(variant, root, specs.study.name))
            shutil.rmtree(opened.directory / "runs", ignore_errors=True)  # of a run that was killed
            watch = stack.enter_context(_open_watches(specs, opened, {}, profile, traces))
            room = _open_room(specs, opened, root)
            return replace(
                bench,
                scratch=opened.directory,
                watch=watch,
                room=room,
                blocks=[opened.block],
                helpers=_list_helpers([opened]),
            )

        try:
            care = DeviceCare({name: (specs.devices[name], opened_device) for name, opened_device in opened.items()})
            yield Measurer(specs, case, bench, facts["tier"], store, progress, care, on_filesystem)
        finally:
            _remove_parts(layout)


def _list_helpers(devices: Iterable[OpenDevice]) -> list[int]:
    return [device.program for device in devices if device.program is not None]


def _open_room(specs: StudySpecs, device: OpenDevice, root: Path) -> DiskRoom:
    study = specs.study
    return DiskRoom(study.name, study.budget.disk_gb, device.directory, root / "results" / study.name)


def _remove_parts(layout: Mapping[str, OpenDevice]) -> None:
    for opened in layout.values():
        shutil.rmtree(opened.directory / "runs", ignore_errors=True)


def _require_root(specs: StudySpecs) -> None:
    """Raise UserError where a study varies settings of the kernel and this is not root."""
    families = [family for family in specs.study.factors.kernel_settings if family != "filesystem"]
    if families and os.geteuid() != 0:
        family = families[0]
        raise UserError(
            f"`factors: {{{family}: ...}}` changes settings of the kernel, which only root may; run it as root"
        )


def _require_different(name: str, device: OpenDevice, layout: Mapping[str, OpenDevice]) -> None:
    """Raise UserError where two devices of a layout are one file system: nothing could be distinguished there."""
    names = {device.directory.stat().st_dev: name}
    for other_name, opened in layout.items():
        number = opened.directory.stat().st_dev
        if number in names:
            raise UserError(f"layout: the devices {names[number]} and {other_name} lie on the same file system")
        names[number] = other_name


def _open_watches(
    specs: StudySpecs, device: OpenDevice, layout: Mapping[str, OpenDevice], profile: Path, traces: Path | None
) -> Watch:
    """Return the watch of the data's device and, with a layout, of the others; profiles of all lie side by side."""
    scope: Literal["device", "process"] = "device" if device.dedicated else "process"
    prefer, probes = specs.study.monitor, specs.study.watch
    first = open_watch(device.block, _unit(profile), scope, prefer, probes, files="device", trace=traces)
    if not layout:
        return first
    other_watches: dict[str, Watch] = {}
    several = SeveralWatch(first, other_watches)
    try:
        for name, opened in layout.items():
            other_watches[name] = open_watch(opened.block, _unit(profile.with_name(f"{name}.json")), "device", prefer)
    except BaseException:
        several.close()
        raise
    return several


def _unit(profile: Path) -> int:
    """Return the preferred write size of a device in bytes, by which alignment is counted."""
    return int(read_document(profile, DeviceProfile)["preferred_write_bytes"] or _NO_PREFERENCE)
