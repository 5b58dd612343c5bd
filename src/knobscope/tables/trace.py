"""Tables of a trace of single requests."""

from typing import Annotated, TypedDict

from knobscope.tables.declaring import Count, Integer, Text, Truth, Unsigned


class EventRow(TypedDict, total=False):
    """Every request that was issued in the run, in order of issue."""

    ts_ns: Annotated[Count, "Time of issue, from the start of the run."]
    lba: Annotated[Count, "First sector of 512 bytes, on the whole disk."]
    bytes: Annotated[Count, "Length."]
    op: Annotated[Text, "`read`, `write`, `discard` or `flush`."]
    file: Annotated[Text | None, "File; NULL: not known, or none."]
    offset: Annotated[Count | None, "Begin of the request in the file, in bytes."]
    lat_ns: Annotated[Count | None, "Time from issue to completion; NULL: the kernel showed no completion."]
    wait_ns: Annotated[Count | None, "Time from the making of the request to its issue."]
    queue: Annotated[Integer | None, "Hardware queue."]
    owner: Annotated[Text, "`own`, `inode`, `journal`, `flush`, `foreign`, `unknown` or `unseen`."]
    pid: Annotated[Integer | None, "Process that submitted it; NULL for a flush, which nobody submits."]
    thread: Annotated[Integer | None, "Thread of that process."]
    operation: Annotated[
        Text | None,
        "Transaction or query of the load client, as in table `operations`, in which this thread served a session when "
        "it submitted the request; NULL: none, or not recorded.",
    ]
    comm: Annotated[Text | None, "Name of that process."]
    fua: Annotated[Truth, "Whether it must be on the medium before it ends (FUA)."]
    preflush: Annotated[Truth, "Whether it asks for a flush of the device's cache first."]
    sync: Annotated[Truth, "Whether somebody waits for it."]
    meta: Annotated[Truth, "Whether it is for the file system's own data."]
    failed: Annotated[Truth, "Whether it ended with an error."]
    device: Annotated[Text | None, "File system, as MAJ:MIN."]
    inode: Annotated[Unsigned | None, "Inode of the file."]


class LostRow(TypedDict, total=False):
    """What was recorded and lost each time that events were taken out of the kernel's buffer, about ten a second."""

    ts_ns: Annotated[Count, "When, from the start of the run; the last one is its end."]
    recorded: Annotated[Count, "Events that were kept since the row before."]
    lost: Annotated[Count, "Events that were not: the buffer was full, or the trace had its full length."]


#: In a directory of their own per run; no part of a study's database.
TRACE_ROWS: dict[str, type] = {"events": EventRow, "lost": LostRow}
