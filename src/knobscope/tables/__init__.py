"""Names, columns and types of all tables: the interface between stages, rules and users.

Each stage's tables are a module of their own.
"""

from knobscope.tables.columns import TABLES
from knobscope.tables.trace import TRACE_TABLES
from knobscope.tables.writing import read_table, write_json, write_table

__all__ = ["TABLES", "TRACE_TABLES", "read_table", "write_json", "write_table"]
