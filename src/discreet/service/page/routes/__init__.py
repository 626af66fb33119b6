"""The pages, by the role that needs them; each module lists its addresses with the permission that they need."""
