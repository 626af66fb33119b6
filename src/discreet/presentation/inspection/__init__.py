"""A steward looks into a file before it is protected: what is private there is shown to nobody else."""
