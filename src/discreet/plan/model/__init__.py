"""The nodes of a plan: types, declared tables, relations, expressions, and what an engine is asked to compute."""
