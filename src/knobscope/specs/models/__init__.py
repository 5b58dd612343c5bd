"""What a spec may say: the pydantic models of DBMSs, devices, workloads, studies and rules."""
