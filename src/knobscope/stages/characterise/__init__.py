"""Characterise: what a device prefers, measured by fio."""

from knobscope.stages.characterise.profile import Mode, characterise_device, write_profile

__all__ = ["Mode", "characterise_device", "write_profile"]
