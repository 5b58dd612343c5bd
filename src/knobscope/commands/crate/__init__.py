"""`knobscope crate`: a finished study as a Workflow Run RO-Crate, from which anyone can draw its figures again."""
