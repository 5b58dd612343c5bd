"""What this machine can run: DBMSs, load generators, monitor, tools; and how to get what is missing."""
