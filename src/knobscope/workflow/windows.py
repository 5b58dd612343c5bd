"""How many operations a measured window will hold, as far as that is known before a study begins.

A window with few of them cannot show small effects. It is known from runs of the same case, and where there are none
bounded by how long a flush takes on the device: that was measured, or is in the device's model.
"""

from pathlib import Path

from knobscope.durable_files import DamagedFileError
from knobscope.specs import Case, StudySpecs, Workload
from knobscope.specs.models.device import Device
from knobscope.specs.models.device_figures import flush_latency_us
from knobscope.specs.models.device_model import DiskModel, FlashModel
from knobscope.tables import DeviceProfile, read_document, read_table
from knobscope.text.formats import format_count, format_micros, format_rate, format_seconds, loosen_units

#: The latest blocks of a case say enough, and a dry run takes no longer for old ones.
_MOST_BLOCKS = 4


def describe_windows(specs: StudySpecs, results: Path) -> list[str]:
    """Return a line for each case of which something is known; `results` is the folder with those of all studies."""
    lines = (_describe_case(specs, case, results) for case in specs.cases)
    return [loosen_units(line) for line in lines if line]


def _describe_case(specs: StudySpecs, case: Case, results: Path) -> str | None:
    workload = specs.workloads[case.workload]
    window = format_seconds(workload.measure_s)
    for study in (specs.study.name, "*"):
        if rate := _measured_rate(case, results, study):
            window = format_seconds(seconds := _window_s(workload, rate[0]))
            count = format_count(round(rate[0] * seconds))
            source = f"the default configuration had {format_rate(rate[0])} in the results of {rate[1]}"
            return f"{case}: a window of {window} will hold about {count} operations: {source}"
    flush_us = _flush_us(specs.devices[case.device], results) if workload.class_ == "write" else None
    if not flush_us:
        return None
    count = format_count(max(1, round(workload.measure_s * 1e6 / flush_us)))
    each = f"in a window of {window} each client thread completes about {count} operations at most that wait for one"
    return f"{case}: a flush after 4 KiB takes about {format_micros(flush_us)} on {case.device}: {each}"


def _window_s(workload: Workload, rate: float) -> float:
    """Return how long a window will be at a rate of operations."""
    if workload.measure_operations is None:
        return workload.measure_s
    shortest = min(4 * workload.interval_s, workload.measure_s)
    return min(max(workload.measure_operations / rate, shortest), workload.measure_s) if rate else workload.measure_s


def _measured_rate(case: Case, results: Path, study: str) -> tuple[float, str] | None:
    """Return the median throughput of the default configuration in the latest blocks of a case, and their study."""
    blocks = sorted(results.glob(f"{study}/{case}/runs/*/runs.parquet"), key=lambda path: path.stat().st_mtime)
    if not blocks:
        return None
    latest = blocks[-1].relative_to(results).parts[0]
    try:
        rows = read_table([path for path in blocks if path.relative_to(results).parts[0] == latest][-_MOST_BLOCKS:])
    except DamagedFileError:  # the stage that needs the file says so, and makes it anew
        return None
    rates = rows[rows["is_sentinel"] & (rows["status"] == "ok")]["throughput_ops"].dropna()
    return (float(rates.median()), latest) if len(rates) else None


def _flush_us(device: Device, results: Path) -> float | None:
    """Return how long a flush after 4 KiB takes on a device: as fio measured it here, or as its model has it."""
    profiles = sorted(results.glob(f"*/devices/{device.name}.json"), key=lambda path: path.stat().st_mtime)
    for profile in reversed(profiles):
        try:
            return read_document(profile, DeviceProfile).get("flush_p50_us")
        except DamagedFileError:  # as above
            continue
    match device.emulate and device.emulate.model:
        case DiskModel() as disk:
            return disk.rotation.us
        case FlashModel(power_loss_protection=False) as flash:
            return flush_latency_us(flash)
    return None
