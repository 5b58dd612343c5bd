"""A program: writes the rows and the queries of TPC-DS into files, with the extension `tpcds` of DuckDB.

It is run by the Python of .fleet/tpcds, where that extension and its DuckDB are; nothing of knobscope is imported.
Files are TABLE.csv (columns between bars, nothing for null) and queries.json: number, text and columns of each query.
"""

import argparse
import json
from pathlib import Path


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scale_factor", type=float, help="1 is about 1 GB")
    parser.add_argument("directory", type=Path, help="where the files appear")
    args = parser.parse_args()
    import duckdb
    import duckdb_extensions

    duckdb_extensions.import_extension("tpcds")
    scratch = args.directory / "rows.duckdb"
    with duckdb.connect(str(scratch)) as database:
        database.execute("load tpcds")
        database.execute(f"call dsdgen(sf={args.scale_factor})")
        for (table,) in database.execute("show tables").fetchall():
            target = str(args.directory / f"{table}.csv").replace("'", "''")
            database.execute(f"copy {table} to '{target}' (format csv, delimiter '|', header false)")
        queries = [
            {"number": number, "text": text, "columns": len(database.execute(f"describe {text}").fetchall())}
            for number, text in database.execute("select query_nr, query from tpcds_queries()").fetchall()
        ]
    scratch.unlink()
    (args.directory / "queries.json").write_text(json.dumps(queries, indent=1))


if __name__ == "__main__":
    _main()
