"""`knobscope compare`: two studies side by side: set-ups, speed, effects of knobs, rankings and mismatches."""

from knobscope.compare.comparison import Comparison, compare_studies
from knobscope.compare.reading import StudyTables, find_database, read_study

__all__ = ["Comparison", "StudyTables", "compare_studies", "find_database", "read_study"]
