"""The mechanisms of the field, each with its event and its error."""
