"""Programs: what is read and released for a question, and how it is run."""
