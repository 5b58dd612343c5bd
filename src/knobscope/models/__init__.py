"""Models: what a study learned, kept as a file, and how a later study starts from it instead of screening."""

from knobscope.models.saving import fitted_model, write_model
from knobscope.models.starting import fit_from_prior

__all__ = ["fit_from_prior", "fitted_model", "write_model"]
