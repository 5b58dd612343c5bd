"""Tables that others wrote: cells in whatever spelling become numbers, truth values and words, or are refused.

What they name is written as CSV that no spreadsheet takes for a formula.
"""

from knobscope.cells.numbers import read_numbers
from knobscope.cells.problems import Problems
from knobscope.cells.reading import Reading, read_factor, read_measured, read_truth
from knobscope.cells.spelling import FAILURE_WORDS, TRUTH, is_default_word
from knobscope.cells.table import Column, TextTable, read_text_table
from knobscope.cells.writing import to_csv
