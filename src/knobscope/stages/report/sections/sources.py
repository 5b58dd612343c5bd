"""Who asked for the I/O of the default configuration, and in which order its system calls and the device saw it."""

from knobscope.figures import Figure, FileSizes, draw_file_sizes, draw_shares, slug
from knobscope.specs import Case
from knobscope.study_data.study import StudyData, name_case
from knobscope.text.formats import format_share, format_size, join_words, plural

_MOST_SUBMITTERS = 8
_MOST_FILES = 6


def submitters_figure(data: StudyData, case: Case, runs: list[str]) -> Figure | None:
    """Return the bytes of a mean run by the thread that submitted the requests; None where nobody is known.

    Threads whose names differ in digits only count as one.
    """
    rows = data.rows(
        r"""
        WITH named AS (
            SELECT regexp_replace(submitter, '\d+', 'N', 'g') AS thread, submitter, op, requests, bytes
            FROM submitters WHERE op IN ('read', 'write') AND requests > 0 AND list_contains(?, run_id)
        )
        SELECT thread, op, count(DISTINCT submitter) AS names, (sum(requests) / ?)::DOUBLE AS requests,
            (sum(bytes) / ?)::DOUBLE AS bytes
        FROM named GROUP BY thread, op ORDER BY bytes DESC, thread, op
        """,
        runs, len(runs), len(runs),
    )  # fmt: skip
    if not rows:
        return None
    by_name: dict[str, dict[str, float]] = {}
    counts: dict[str, int] = {}
    sizes: dict[str, str] = {}
    for row in rows:
        by_name.setdefault(row["thread"], {})[row["op"]] = row["bytes"]
        sizes.setdefault(row["thread"], f"{row['op']}s of {format_size(row['bytes'] / row['requests'])}")
        counts[row["thread"]] = max(counts.get(row["thread"], 0), row["names"])
    ordered = sorted(by_name, key=lambda name: -sum(by_name[name].values()))
    shown = [
        FileSizes(f"{name} ({counts[name]} names)" if counts[name] > 1 else name, sizes[name], by_name[name])
        for name in ordered[:_MOST_SUBMITTERS]
    ]
    omitted_count = len(ordered) - len(shown)
    summary = join_words([f"{name} {format_size(sum(by_name[name].values()))}" for name in ordered[:4]])
    return Figure(
        name=slug("submitters", *case),
        title="Bytes by submitter",
        description=f"Bytes read and written in a run of {name_case(case)}, by submitting thread: {summary}.",
        draw=lambda width: draw_file_sizes(width, shown),
        data=rows,
        caption="mean of a run with the default configuration, from all threads, with the mean size of a request; "
        "kworker is the kernel's writeback, jbd2 the file system's journal"
        + (f"; {plural(omitted_count, 'smaller one')} not shown" if omitted_count else ""),
    )


def access_figure(data: StudyData, case: Case) -> Figure | None:
    """Return, for the files with most requests, how much was in order in system calls and at the device.

    From table `access_contrasts`, which a study with `watch: [syscalls]` has; None without.
    """
    rows = data.rows(
        """
        SELECT file, role, op, calls, requests, logical_share, device_share, logical_pattern, device_pattern
        FROM access_contrasts WHERE dbms = ? AND device = ? AND workload = ?
            AND logical_share IS NOT NULL AND device_share IS NOT NULL
        ORDER BY requests DESC, file, op LIMIT ?
        """,
        *case, _MOST_FILES,
    )  # fmt: skip
    if not rows:
        return None
    shares = [
        (
            f"{row['file']} {row['op']}s",
            [("base-bar", "system calls", row["logical_share"]), ("value-bar", "device", row["device_share"])],
        )
        for row in rows
    ]
    summary = "; ".join(
        f"{name}: {', '.join(f'{layer} {format_share(share)}' for _, layer, share in bars)}" for name, bars in shares
    )
    return Figure(
        name=slug("order", *case),
        title="In order: as asked, and as the device saw it",
        description=f"Share of sequential requests by file. {summary}.",
        draw=lambda width: draw_shares(width, shares),
        data=rows,
        caption="sequential share of system calls and of requests, in runs of the default configuration",
    )
