"""Fitted learners as text and back, without pickle."""
