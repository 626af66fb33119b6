"""The book for callers: budgets, history, certificates, verification, and the acts of stewards."""

from discreet.service.acts.book_acts import Acts, recorder

__all__ = ["Acts", "recorder"]
