"""The ledger for callers: budgets, history, certificates, verification, and what stewards do to it, people and keys."""

from discreet.service.acts.book_acts import StewardActions, recorder
from discreet.service.acts.people_acts import PEOPLE_VERBS

__all__ = ["PEOPLE_VERBS", "StewardActions", "recorder"]
