"""Numbers and words for people: one style of figures, layouts of terminal output, sentences of verdicts."""
