"""Tables of what threads waited for, with `watch: [waits]`."""

from typing import Annotated

from knobscope.tables.declaring import Count, Integer, Real, RunColumns, Text, Unsigned


class WaitRow(RunColumns, total=False):
    """Where the time of threads went in a run: per class of threads, the rows add up to their wall time.

    Classes are those that `threads` of the DBMS's spec names; a thread that serves clients and that no pattern names is
    of class `session`, another one of a class of its own name without its number. In the database of a study, sessions
    that pass operations on to other threads are of class `listener`. With `watch: [waits]`.
    """

    thread_class: Annotated[Text, "Class of threads; `session` are those that serve clients."]
    reason: Annotated[
        Text,
        "`cpu`; `runnable` (woken, no processor free); `preempted`; `flush`; `write` (write-back, throttled or direct "
        "writes); `read`; `fault` (page fault on a mapped file); `swap` (page fault on memory that was swapped out); "
        "`lock` (of the program or of the kernel, where nobody could be followed); `journal` (of the file system); "
        "`network` (the client, or a peer, has not asked); `timer` (it sleeps); `async` (io_uring, libaio); `other`; "
        "`unknown` (time of which nothing is known).",
    ]
    threads: Annotated[Count, "Threads of the class."]
    waits: Annotated[Count, "Waits that had a part of this kind."]
    time_us: Annotated[Real, "Time of all these threads together."]
    through_us: Annotated[
        Real,
        "Part of it that passed waiting for another thread, which did this meanwhile: a session that sleeps until the "
        "leader of its group commit has flushed waits for the flush through the leader.",
    ]
    longest_us: Annotated[Real, "Longest single part."]


class WaitChainRow(RunColumns, total=False):
    """Through whom threads waited in a run: the parts of `waits` that passed waiting for another thread.

    With `watch: [waits]`.
    """

    thread_class: Annotated[Text, "Class of the threads that waited."]
    via_class: Annotated[Text | None, "Class of the thread that they waited for; NULL: it is not known."]
    reason: Annotated[Text, "What that thread did, or waited for, meanwhile; as in `waits`."]
    links: Annotated[
        Integer, "1: it did so itself; 2 and more: it waited for yet another thread, which did; at most 4."
    ]
    waits: Annotated[Count, "Waits that had a part of this kind."]
    time_us: Annotated[Real, "Time of these parts."]
    longest_us: Annotated[Real, "Longest of them."]


class WaitFileRow(RunColumns, total=False):
    """Which files threads waited for in a run, without what passed waiting for another thread.

    With `watch: [waits]`.
    """

    file: Annotated[Text, "As in `files`; `unknown` where the file of a wait is not known."]
    role: Annotated[Text, "As in `files`."]
    table_name: Annotated[Text | None, "Table in the file; NULL where it holds none, or several."]
    device: Annotated[Text | None, "File system, as MAJ:MIN."]
    inode: Annotated[Unsigned | None, "Inode of the file."]
    reason: Annotated[Text, "As in `waits`."]
    waits: Annotated[Count, "Waits for the file."]
    time_us: Annotated[Real, "Time of these waits."]
    longest_us: Annotated[Real, "Longest of them."]


class WaitStackRow(RunColumns, total=False):
    """Where in the kernel threads waited in a run: the stacks that took most time; with `watch: [waits]`.

    Where the request that ends a wait tells its reason, few stacks are taken; their figures stand for all of that kind.
    """

    reason: Annotated[Text, "As in `waits`."]
    syscall: Annotated[Text | None, "System call that they waited in; NULL: none, or not known."]
    stack: Annotated[Text, "Functions of the kernel, the innermost first, separated by semicolons."]
    waits: Annotated[Count | None, "Waits in it; NULL: not counted."]
    time_us: Annotated[Real, "Time of these waits."]


WAITS_TABLES: dict[str, type] = {
    "waits": WaitRow,
    "wait_chains": WaitChainRow,
    "wait_files": WaitFileRow,
    "wait_stacks": WaitStackRow,
}
