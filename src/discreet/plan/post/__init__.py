"""Post-processing: what is computed from released groups alone."""
