"""Databases of strangers: nothing that is stored in one as SQL is executed, and no value in one breaks a command."""

import random
from pathlib import Path

import pytest
from canaries import STUDY, Canaries, Forge, Open

from knobscope.tables import TABLES


def commands_on(database: Path, folder: Path, honest: Path) -> list[list[object]]:
    """Return the commands that read a study's database."""
    asked = [STUDY, "--database", database]
    return [
        ["finding", *asked],
        ["finding", *asked[:1], 1, *asked[1:]],
        ["report", "--study", STUDY, "--database", database, "--out", folder / "page.html"],
        ["compare", database, honest, "--json", "-"],
        ["export", STUDY, "--to", "mlos", "--case", "sqlite/local-disk/ycsb-a", "--database", database,
         "--out", folder / "space.json"],
        ["io-knobs", *asked],
    ]  # fmt: skip


FORGERIES = {
    "view": (["ALTER TABLE runs RENAME TO r", "CREATE VIEW runs AS SELECT * REPLACE ((SELECT content FROM "
              "read_text('{file}')) AS dbms_version) FROM r"], "found the view 'runs', which knobscope did not write"),
    "macro": (["CREATE MACRO count(x) AS (SELECT content FROM read_text('{file}'))"], "found the macro 'count'"),
    "catalog macro": (["CREATE MACRO duckdb_views() AS TABLE SELECT 'none' AS view_name, false AS internal",
                       "CREATE VIEW x AS FROM read_text('{file}')"], "found the view 'x'"),
    "schema": (["CREATE SCHEMA s"], "found the schema 's'"),
    "type": (["CREATE TYPE mood AS ENUM ('a')"], "found the type 'mood'"),
    "sequence": (["CREATE SEQUENCE s"], "found the sequence 's'"),
    "index": (["CREATE INDEX i ON runs(run_id)"], "found the index 'i'"),
    "default": (["ALTER TABLE runs ALTER dbms_version SET DEFAULT (getvariable('x'))"],
                "found the generated or default value of column 'runs.dbms_version'"),
    "wrong type": (["ALTER TABLE runs ALTER throughput_ops TYPE VARCHAR"],
                   "column 'throughput_ops' of table `runs` has type 'VARCHAR'; expected DOUBLE"),
    "extension type": (["ALTER TABLE effects DROP knob", "ALTER TABLE effects ADD knob GEOMETRY"],
                       "column 'knob' of table `effects` has type 'GEOMETRY'; expected VARCHAR"),
    "no runs": (["ALTER TABLE runs RENAME TO others"], "found no table `runs`"),
}  # fmt: skip
LARGE = {
    "rows": ("CREATE OR REPLACE TABLE findings AS SELECT NULL::VARCHAR AS rule FROM range(50_000_001)",
             "table `findings` has 50,000,001 rows; expected at most 50,000,000"),
    "text": ("INSERT INTO findings (sentence) SELECT repeat('x', 1 << 14) FROM range(40_000)",
             "expected at most 536,870,912"),
}  # fmt: skip


@pytest.mark.slow
def test_what_knobscope_did_not_write_is_refused_by_name(
    forge: Forge, open_watched: Open, canaries: Canaries, run_folder: Path, honest: Path
) -> None:
    """All kinds in one child, which takes longer to start than to open a database; each command meets one or two."""
    commands, sentences = [], []
    for number, (statements, sentence) in enumerate(FORGERIES.values()):
        database = forge(*(text.replace("{file}", str(canaries.file)) for text in statements))
        commands.append(commands_on(database, run_folder, honest)[number % 6])
        sentences.append(sentence)
    for answer, sentence in zip(open_watched(*commands), sentences, strict=True):
        assert answer.code == 2
        assert sentence in answer.text


@pytest.mark.parametrize(
    "few", [pytest.param(True, marks=pytest.mark.long), pytest.param(False, marks=pytest.mark.long)]
)
def test_more_than_any_study_holds_is_refused(
    few: bool, forge: Forge, open_watched: Open, run_folder: Path, honest: Path
) -> None:
    for statement, sentence in LARGE.values():
        for answer in open_watched(*commands_on(forge(statement), run_folder, honest)[: 1 if few else None]):
            assert answer.code == 2
            assert sentence in answer.text


@pytest.mark.slow
def test_views_and_macros_of_our_names_are_our_own_text(
    forge: Forge, open_watched: Open, canaries: Canaries, run_folder: Path, honest: Path
) -> None:
    """One that has a name of ours is not looked at: what is executed is ours, so the page stays the same."""
    database = forge(
        f"CREATE OR REPLACE VIEW ok_runs AS SELECT * REPLACE ((SELECT content FROM read_text('{canaries.file}')) AS "
        "dbms_version) FROM runs",
        f"CREATE OR REPLACE MACRO most_unattributed() AS (SELECT content FROM read_text('{canaries.file}'))",
    )
    pages = [run_folder / "forged.html", run_folder / "honest.html"]
    both = zip((database, honest), pages, strict=True)
    answers = open_watched(*(["report", "--study", STUDY, "--database", one, "--out", page] for one, page in both))
    assert [answer.code for answer in answers] == [0, 0]
    forged, own = (
        page.read_text().replace(name, "") for page, name in zip(pages, (database.name, honest.name), strict=True)
    )
    assert forged == own


@pytest.mark.slow
def test_text_of_a_database_is_inert(forge: Forge, open_watched: Open, run_folder: Path, honest: Path) -> None:
    """HTML, pictures, fences and escape sequences in every text of the findings and effects are shown, not obeyed."""
    evil = "<script>alert(1)</script>\x1b[2J ![x](http://127.0.0.1/) ``` \u202e\n# Title"
    database = forge(
        *(f"UPDATE findings SET {name} = '{evil}'" for name in ("sentence", "knob", "value", "cause")),
        f"UPDATE runs SET machine = '{evil}', dbms_version = '{evil}'",
        f"UPDATE effects SET knob = '{evil}' WHERE metric = 'throughput_ops'",
    )
    page = run_folder / "page.html"
    listed, markdown, *_ = answers = open_watched(*commands_on(database, run_folder, honest))
    assert (listed.code, markdown.code) == (0, 0), listed.text + markdown.text
    assert "<" not in markdown.text and "![" not in markdown.text.replace("!\\[", "")
    assert "\n# Title" not in markdown.text
    assert markdown.text.count("```") == 2  # of our own commands
    assert answers[2].code == 0
    assert "<script>alert" not in page.read_text() and "&lt;script&gt;alert" in page.read_text()


def forgeries_of(random_: random.Random) -> list[str]:
    """Return SQL that forges a few things."""
    evil = ["NULL", "''", "'\x1b[2J<script>alert(1)</script>'", "'{'", "'[1'", "repeat('x', 100000)", "'../../etc'"]
    numbers = ["NULL", "'nan'", "'inf'", "'-inf'", "-1", "0", "1e308", "-1e308"]
    whole = ["NULL", "0", "-1", "9223372036854775807", "-9223372036854775808"]
    made = []
    for _ in range(random_.randint(1, 4)):
        table = random_.choice([*TABLES, "runs", "findings", "effects", "importance", "device_profile"])
        column, kind = random_.choice(list(TABLES[table].items()))
        values = {"VARCHAR": evil, "DOUBLE": numbers, "BIGINT": whole, "INTEGER": ["NULL", "0", "-1", "2147483647"]}
        value = random_.choice(values.get(kind, ["NULL"]))
        made.append(
            random_.choice(
                [
                    *[f'UPDATE "{table}" SET "{column}" = {value}'] * 6,
                    f'INSERT INTO "{table}" ("{column}") VALUES ({value})',
                    f'ALTER TABLE "{table}" DROP "{column}"',
                    f'ALTER TABLE "{table}" ALTER "{column}" TYPE VARCHAR',
                    f'DELETE FROM "{table}"',
                    f'DROP TABLE "{table}"',
                    f'CREATE OR REPLACE MACRO "{random_.choice(["sum", "max", "coalesce", "list"])}"(x) AS '
                    "(SELECT content FROM read_text('{file}'))",
                    f'ALTER TABLE "{table}" RENAME TO other; CREATE VIEW "{table}" AS FROM read_text(\'{{file}}\')',
                ]
            )
        )
    return made


@pytest.mark.parametrize(
    ("first", "count"),
    [
        pytest.param(0, 5, marks=pytest.mark.slow),
        *(pytest.param(n, 50, marks=pytest.mark.long) for n in range(0, 500, 50)),
    ],
)
def test_forged_databases_end_in_a_page_or_a_sentence(
    first: int, count: int, forge: Forge, open_watched: Open, canaries: Canaries, run_folder: Path, honest: Path
) -> None:
    commands = []
    for seed in range(first, first + count):
        statements = [text.replace("{file}", str(canaries.file)) for text in forgeries_of(random.Random(seed))]
        database = forge()
        for statement in statements:
            apply(database, statement)
        commands += commands_on(database, run_folder, honest)[:4]
    answers = open_watched(*commands)
    assert {answer.code for answer in answers} == {0, 2}
    assert all(answer.text.startswith("knobscope: ") for answer in answers if answer.code)


def apply(database: Path, statement: str) -> None:
    """Execute a statement; one that meets what an earlier forgery has taken away forges nothing."""
    import duckdb

    with duckdb.connect(str(database)) as connection:
        try:
            connection.execute(statement)
        except duckdb.Error:
            assert "MACRO" not in statement
