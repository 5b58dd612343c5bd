"""Processes that end with us, also after kill -9."""

from knobscope.processes.supervision import PIPELINE_VARIABLE, follow_pipeline, supervise

__all__ = ["PIPELINE_VARIABLE", "follow_pipeline", "supervise"]
