"""Tables of what fio measured on a device."""

from typing import Annotated, TypedDict

from knobscope.tables.declaring import Count, Integer, Real, Text, Time


class DeviceProfileRow(TypedDict, total=False):
    """What fio measured of each device, in a few figures."""

    device: Annotated[Text, "Device, by the name of its spec."]
    tier: Annotated[Text, "Storage class, of the spec or as the kernel tells."]
    tier_rank: Annotated[Integer, "Order of the tiers; higher is faster."]
    block_device: Annotated[Text | None, "The kernel's name of the block device."]
    filesystem: Annotated[Text | None, "File system that was measured through."]
    measured_at: Annotated[Time, "When it was measured (UTC)."]
    preferred_write_bytes: Annotated[
        Count | None,
        "The write unit, or the smallest write within 10 % of the best bandwidth. NULL: that still rises at 4 MiB.",
    ]
    write_unit_bytes: Annotated[
        Count | None, "Size in which the device stores: writes that fill it in part cost more. NULL: none was found."
    ]
    write_unit_us: Annotated[
        Real | None, "What a durable write takes longer that fills a unit in part. NULL: no unit was found."
    ]
    fsync_rate: Annotated[Real | None, "Writes of 4 KiB, each followed by fsync, per second, one at a time."]
    fsync_p50_us: Annotated[Real | None, "Median time of an fsync after such a write."]
    flush_p50_us: Annotated[
        Real | None, "Median time of an fdatasync after a write of 4 KiB over one that was there before."
    ]
    flush_p99_us: Annotated[Real | None, "Time within which 99 % of them end."]
    random_read_iops_qd1: Annotated[Real | None, "Random reads of 4 KiB per second with one in flight."]
    random_read_iops_best: Annotated[Real | None, "Random reads of 4 KiB per second at the best queue depth."]
    best_queue_depth: Annotated[Integer | None, "Queue depth from which on more does not help."]
    saturating_depth: Annotated[
        Real | None,
        "Queue depth at which random reads come to 90 % of their plateau (interpolated). NULL: there is no plateau.",
    ]
    random_sequential_ratio: Annotated[Real | None, "Reads of 4 KiB with one in flight: rate of random to sequential."]
    random_sequential_write_ratio: Annotated[
        Real | None, "The same of sustained writes of 4 KiB, at the greatest depth that was tried."
    ]
    reads_beside_writes_ratio: Annotated[
        Real | None, "Median of a random read during a stream of writes, as a multiple of that alone."
    ]


class DeviceCurveRow(TypedDict, total=False):
    """The measured curves behind the device profile."""

    device: Annotated[Text, "Device, by the name of its spec."]
    curve: Annotated[
        Text,
        "`queue_depth`; `write_size`: sustained writes, four at a time; `write_size_durable`, `write_size_alone`: one "
        "at a time, answered when durable or before; `commit`: each with fsync; `flush`: with fdatasync; `beside`: "
        "reads together with writes.",
    ]
    pattern: Annotated[Text, "`read`, `write`, `randread` or `randwrite`, in fio's words."]
    block_bytes: Annotated[Count, "Size of a request."]
    queue_depth: Annotated[Integer, "Requests that fio keeps in flight."]
    shift_bytes: Annotated[Integer | None, "How far offsets are from multiples of the size."]
    iops: Annotated[Real, "Requests per second."]
    bytes_per_s: Annotated[Real, "Bytes per second."]
    latency_p50_us: Annotated[Real | None, "Median latency of a request."]
    latency_p99_us: Annotated[Real | None, "Latency within which 99 % of them end."]


class DevicePropertyRow(TypedDict, total=False):
    """What is known of each device: measured, how sure that is, and what the kernel says."""

    device: Annotated[Text, "Device, by the name of its spec."]
    property: Annotated[Text, "`write_unit`, `flush`, `saturating_depth`, ..."]
    value: Annotated[Real | None, "What was measured. NULL: nothing was found, or it cannot be measured."]
    unit: Annotated[Text, "Unit of the value: `bytes`, `us`, `requests`, `ratio`."]
    confidence: Annotated[Text, "`high`, `medium`, `low` or `not measured`."]
    because: Annotated[Text, "What the value and its confidence rest on."]
    others: Annotated[
        Text | None, "What others did in the pauses between measurements, where that makes the value less sure."
    ]
    kernel: Annotated[Text | None, "What sysfs says of the same; NULL: nothing."]


class DeviceProfile(DeviceProfileRow, total=False):
    """What `knobscope characterise` writes of a device (JSON)."""

    block_identity: str | None  # of the device itself, whatever the kernel calls it; None: not known
    method: dict[str, object]  # how it was measured
    properties: list[DevicePropertyRow]
    curves: list[DeviceCurveRow]


DEVICES_TABLES: dict[str, type] = {
    "device_profile": DeviceProfileRow,
    "device_curve": DeviceCurveRow,
    "device_property": DevicePropertyRow,
}
