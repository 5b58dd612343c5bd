"""Where the load came from, which the top of the page tells: the DBMS's own machine, or another one."""

from collections.abc import Iterator

from knobscope.study_data.study import Row, StudyData
from knobscope.text.formats import format_number


def tell_client(data: StudyData) -> Iterator[tuple[str, str]]:
    """Yield a fact for each machine that the load came from; nothing is known of runs that were measured elsewhere."""
    if data.is_imported:
        return
    if data.value("SELECT count(*) FROM runs WHERE client_host IS NULL AND status = 'ok'"):
        yield "Load generator", "on the machine of the DBMS, sharing its processors"
    for row in data.rows(
        """
        SELECT client_host, any_value(client_machine) AS machine, median(client_round_trip_us) AS round_trip,
            max(client_round_trip_us) AS longest, arg_max(client_clock_offset_us, abs(client_clock_offset_us)) AS ahead,
            max(client_clock_error_us) AS error, max(abs(client_clock_change_us)) AS change
        FROM runs WHERE client_host IS NOT NULL GROUP BY client_host ORDER BY client_host
        """
    ):
        yield "Load generator", _describe(row)


def _describe(row: Row) -> str:
    """Say which machine it was, what the way there costs each operation, and how far its clock can be trusted."""
    ahead = row["ahead"]
    facts = [
        f"on {row['client_host']} ({row['machine']}), over ssh",
        f"the round trip of a byte took {format_number(row['round_trip'])} µs (median; at most "
        f"{format_number(row['longest'])} µs"
        "), which is part of every latency",
        f"its clock was up to {format_number(abs(ahead))} µs {'ahead' if ahead >= 0 else 'behind'}, known within "
        f"± {format_number(row['error'])} µs; its timestamps are corrected for that",
    ]
    if row["change"] is not None:
        facts.append(f"within a run it changed by at most {format_number(row['change'])} µs")
    return "; ".join(facts)
