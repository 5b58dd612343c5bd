"""`knobscope show`: one run of a study, from its results."""
