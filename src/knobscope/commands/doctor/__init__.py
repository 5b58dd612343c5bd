"""What this machine can run: DBMSs, load generators, monitor, tools; and how to get what is missing."""

from knobscope.commands.doctor.checks import Finding, examine

__all__ = ["Finding", "examine"]
