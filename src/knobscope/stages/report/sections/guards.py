"""What the guards found, in words: runs set aside, sessions on another level, missing blocks, negative controls."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from knobscope.specs import Case
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.tables import NO_BLOCK
from knobscope.text.formats import describe_change, format_count, format_number, join_words, list_names, plural

#: Guard -> what it found of one run, and of several.
_FOUND = {
    "copied": (
        "has exactly the same figures as another run",
        "have exactly the same figures as other runs",
    ),
    "frozen": ("has a series that does not change", "have a series that does not change"),
    "truncated": ("has no intervals at the end of its window", "have no intervals at the end of their window"),
    "stalled": (
        "stalled, at least three times slower than others of its configuration and block",
        "stalled, at least three times slower than others of their configuration and block",
    ),
    "block": ("is in a block that cannot be compared", "are in blocks that cannot be compared"),
    "silent": (
        "completed no operation for a third of its window or more",
        "completed no operation for a third of their window or more",
    ),
}


def name_set_aside(data: StudyData, case: Case | None = None) -> list[str]:
    """Return for each guard how many runs it set aside, of a case or of all, and why."""
    where = "WHERE dbms = ? AND device = ? AND workload = ?" if case else ""
    counted = data.rows(
        f"SELECT guard, count(*) AS runs FROM set_aside_runs JOIN runs USING (run_id) {where} GROUP BY guard",  # noqa: S608
        *(case or ()),
    )
    counts = {row["guard"]: row["runs"] for row in counted}
    return [
        f"{format_count(counts[guard])} {singular if counts[guard] == 1 else plural_text}"
        for guard, (singular, plural_text) in _FOUND.items()
        if guard in counts
    ]


def describe_levels(data: StudyData) -> Iterator[str]:
    """Say in which cases a session was on another level."""
    for case in data.measured_cases:
        sessions = data.of_case("blocks", case, "block_id, session")
        outliers = [row for row in sessions if row.get("other_level")]
        if not outliers:
            continue
        count, total = len(outliers), sum(row.get("level") is not None for row in sessions)
        which = f"{plural(total, 'session')} of {name_case(case)}"
        inside = "Effects are computed within sessions and remain valid"
        if count == total:
            ratio = format_number(math.exp(max(row["level"] for row in outliers)))
            yield (
                f"The {which} are on two levels, {ratio}x apart, and it is unknown which one is normal. "
                f"{inside}; do not trust absolute speeds."
            )
            continue
        speeds = join_words(list(dict.fromkeys(describe_level(row) for row in outliers)))
        was, it = ("was", "it") if count == 1 else ("were", "them")
        yield (
            f"{count} of {which} {was} {speeds} than the others throughout. {inside}; "
            f"comparisons of speeds across sessions exclude {it}."
        )


def describe_level(row: Row) -> str:
    """Return how fast a session on another level was: 4.8x slower."""
    return describe_change(row["level"])


def tell_missing_blocks(data: StudyData) -> Iterator[str]:
    """Say that a table of runs that others measured tells of no blocks."""
    if data.value("SELECT count(*) FROM runs WHERE ends_with(block_id, ?)", f"/{NO_BLOCK}"):
        yield (
            "The imported table has no blocks: runs of a case are treated as one series, or as several where times or "
            "order show separate days, and effects rely on the assumption that each was measured in random order."
        )


@dataclass(frozen=True)
class Controls:
    """Negative controls of a study: knobs that can change nothing, so that every finding on them is a false alarm."""

    knobs: list[str]
    comparisons: int  # values and cases with an interval
    alarms: int  # those of them that are findings
    largest: float  # natural-log ratio of the largest effect among the alarms, 0 where none has an effect on throughput

    @property
    def names(self) -> str:
        """The knobs in words."""
        return list_names(self.knobs)


def find_controls(data: StudyData) -> Controls | None:
    """Return what became of the negative controls; None in a study that compared none."""
    thresholds = data.specs.study.thresholds
    effects = data.rows(
        "SELECT *, q_value <= ? AND abs(exp(least(estimate, 50)) - 1) >= ? AS is_clear FROM effects "
        "WHERE metric = 'throughput_ops' AND q_value IS NOT NULL ORDER BY knob",
        thresholds.fdr,
        thresholds.min_effect,
    )
    compared = {_key(row): row for row in effects if _is_control(data, row)}
    if not compared:
        return None
    mismatches = data.rows(
        "SELECT * FROM findings WHERE verdict = 'mismatch' AND confirmed IS DISTINCT FROM 'no' AND knob IS NOT NULL"
    )
    alarms = {_key(row) for row in mismatches if _is_control(data, row)} & set(compared)
    alarms |= {key for key, row in compared.items() if row["is_clear"] and key not in data.gone_effects}
    sizes = [compared[key]["estimate"] for key in alarms]
    knobs = list(dict.fromkeys(row["knob"] for row in compared.values()))
    return Controls(knobs, len(compared), len(alarms), max(sizes, key=abs, default=0.0))


def _is_control(data: StudyData, row: Row) -> bool:
    knob = data.knob(row["dbms"], row["knob"])
    return knob is not None and knob.control


def _key(row: Row) -> tuple[str, ...]:
    return *Case.of(row), row["knob"], row["value"]
