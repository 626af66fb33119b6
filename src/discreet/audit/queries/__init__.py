"""Audits of curators: questions and fits on neighbouring tables, with the noise recorded and replayed."""
