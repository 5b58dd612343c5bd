"""What a study leaves out: catalogues, factors, layouts and settings that a server starts with."""
