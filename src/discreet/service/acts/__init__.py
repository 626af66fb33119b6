"""The ledger for callers: budgets, history, certificates, verification, and what stewards do to it, people and keys."""

from discreet.service.acts.people_actions import PEOPLE_VERBS
from discreet.service.acts.steward_actions import StewardActions, recorder

__all__ = ["PEOPLE_VERBS", "StewardActions", "recorder"]
