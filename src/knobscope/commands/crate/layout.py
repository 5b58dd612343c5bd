"""Where things lie in a crate. The metadata, and the folder of specs, are where others look for them."""

METADATA = "ro-crate-metadata.json"
#: What was measured. A study that is repeated writes into the folder results, and leaves this one as it is.
DATABASE, REPORT = "measured/study.duckdb", "measured/report.html"
FIGURES, TRACES = "measured/figures", "measured/traces"
STUDIES = "specs/studies"
