"""`knobscope attach`: diagnoses a DBMS server that runs already, where it is."""
