"""What a case is in a table."""

__all__ = ["CASE"]

CASE = {"dbms": "VARCHAR", "device": "VARCHAR", "workload": "VARCHAR"}
