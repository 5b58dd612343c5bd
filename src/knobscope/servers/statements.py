"""What a server counts of the statements that it carries out: rows by table, and by what was done to them."""

from collections import Counter

from knobscope.errors import UserError
from knobscope.servers.instance import Instance
from knobscope.servers.readback import output_of

_COLUMNS = ("table", "statement", "rows")


def count_rows(instance: Instance) -> Counter[tuple[str, str]]:
    """Return rows by table and statement (`select`, `insert`, `update`, `delete`) since the server began to count.

    Nothing where the spec has no `statements`. Raises ServerFailedError when the command fails, UserError when it
    prints anything else: then the spec is wrong.
    """
    asked = instance.dbms.statements
    if asked is None:
        return Counter()
    rows: Counter[tuple[str, str]] = Counter()
    for line in output_of(instance, instance.fill_command(asked.command, {}, "start")).splitlines():
        cells = line.split("\t")
        if len(cells) != len(_COLUMNS) or not cells[2].isdecimal():
            raise UserError(
                f"the spec of {instance.dbms.name}: statements.command: found the line {line[:80]!r}; expected "
                f"{', '.join(_COLUMNS)} with a tab between two of them"
            )
        rows[cells[0], cells[1]] += int(cells[2])
    return rows
