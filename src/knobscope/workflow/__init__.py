"""What the Snakefile needs: the pipeline's jobs and inputs, forecasts, recovery, retries."""
