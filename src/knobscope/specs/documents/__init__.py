"""What is generated from the models: schemas and pages of reference."""
