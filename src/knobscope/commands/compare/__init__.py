"""`knobscope compare`: two studies side by side: set-ups, speed, effects of knobs, rankings and mismatches."""

from knobscope.commands.compare.comparison import Comparison, compare_studies
from knobscope.commands.compare.reading import StudyTables, read_study
