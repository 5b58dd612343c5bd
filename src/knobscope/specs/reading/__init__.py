"""From YAML and JSON files to documents with positions, and from those to models."""
