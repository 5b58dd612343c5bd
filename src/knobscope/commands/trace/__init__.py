"""Traces of single block requests, our own or others': read, and described in the numbers of the live monitor."""

from knobscope.commands.trace.profile import profile_trace
from knobscope.commands.trace.reading import open_trace
