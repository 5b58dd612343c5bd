"""How often do rules find something where nothing differs? Twenty names for one configuration, on modelled devices.

Run `python benchmarks/alike.py [--devices sata-ssd ...]` as root, in an empty folder, on an idle machine; what was
measured stays in the folder, and a second call measures what is missing. The study `benchmarks/verdicts/alike.yaml`
sweeps twenty values of a knob that cannot matter, on modelled devices, with all rules. Every verdict on a value and
device, or pair of devices, is a comparison (that of a pair counts for both of them, and once in all); each mismatch
that no experiment withdrew is an alarm. Values of the study's other knob are not counted.
"""

import argparse
from pathlib import Path

import duckdb
from verdicts import OWN, link_specs, run_study

KNOB = "busy_timeout"
DEVICES = ["hdd-7200", "sata-ssd", "sata-ssd-plp", "nvme-consumer", "nvme-datacenter", "slow-unit"]
_COUNTS = """
    WITH alike AS (FROM findings WHERE knob = ?),
    sides AS (
        FROM alike
        UNION ALL BY NAME
        SELECT * REPLACE (evidence ->> 'lower_device' AS device) FROM alike
        WHERE evidence ->> 'lower_device' IS NOT NULL
        UNION ALL BY NAME
        SELECT * REPLACE (NULL AS device) FROM alike
    )
    SELECT device, count(*) AS comparisons,
        count(*) FILTER (verdict = 'mismatch' AND confirmed <> 'no') AS alarms,
        count(*) FILTER (verdict = 'mismatch' AND confirmed = 'no') AS withdrawn,
        count(*) FILTER (verdict = 'insufficient') AS open
    FROM sides GROUP BY device ORDER BY device NULLS LAST
"""
_ALARMS = """
    SELECT rule, device, value, confirmed, sentence FROM findings
    WHERE knob = ? AND verdict = 'mismatch' ORDER BY ALL
"""


def main() -> None:
    """Print the counts by device, then every alarm."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", nargs="+", default=DEVICES)
    devices = parser.parse_args().devices
    link_specs()
    file = Path("specs/studies/alike.yaml")
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"name: alike\ndevices: [{', '.join(devices)}]\n{(OWN / 'alike.yaml').read_text()}")
    results = run_study(file)
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        counts = connection.execute(_COUNTS, [KNOB]).fetchall()
        alarms = connection.execute(_ALARMS, [KNOB]).fetchall()
    print(f"{'device':20} comparisons  alarms  withdrawn  cannot be told")
    for device, comparisons, raised, withdrawn, unclear in counts:
        print(f"{device or 'all':20} {comparisons:11} {raised:7} {withdrawn:10} {unclear:15}")
    for rule, device, value, confirmed, sentence in alarms:
        print(f"{rule} on {device}, {KNOB}={value} (confirmed: {confirmed}): {sentence}")


if __name__ == "__main__":
    main()
