"""What a study does, one package per stage; the Snakefile names their order."""
