"""`knobscope progress`: how far a study is, from what its jobs have written so far."""
