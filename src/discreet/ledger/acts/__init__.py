"""The acts of people on a ledger that need its charges: teams, amounts set aside, approvals."""
