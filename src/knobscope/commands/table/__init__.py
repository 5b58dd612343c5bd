"""Commands on a CSV table that somebody measured, with knobscope or without: `rank`, `replay` and `trend`."""
