"""`knobscope finding`: one mismatch as a report that can be filed with a DBMS's developers."""
