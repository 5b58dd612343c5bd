"""Characterise: what a device prefers, measured by fio."""

from knobscope.stages.characterise.profile import write_profile
