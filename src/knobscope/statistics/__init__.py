"""Statistics that stages and table commands share: designs, models, when to stop, rankings, curves, effects of blocks.

Pure computation on arrays and data frames: nothing here reads a spec or a file.
"""
