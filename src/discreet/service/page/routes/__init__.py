"""The pages, by who needs them first; each lists its addresses with the permission that they need."""
