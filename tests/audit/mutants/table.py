"""The list of all mutants, and their table in the documentation."""

from __future__ import annotations

from tests.audit.mutants import (
    accounts,
    auditors,
    basics,
    choosing,
    claims,
    classifiers,
    curators,
    few_groups,
    fits,
    inference,
    joins,
    learners,
    local_reports,
    moments,
    noises,
    paid_releases,
    robust,
    several,
    streaming,
    trees,
    workloads,
)
from tests.audit.mutants.registry import Mutant

MUTANTS = [
    *noises.MUTANTS,
    *choosing.MUTANTS,
    *accounts.MUTANTS,
    *curators.MUTANTS,
    *several.MUTANTS,
    *joins.MUTANTS,
    *few_groups.MUTANTS,
    *claims.MUTANTS,
    *paid_releases.MUTANTS,
    *auditors.MUTANTS,
    *basics.MUTANTS,
    *robust.MUTANTS,
    *trees.MUTANTS,
    *classifiers.MUTANTS,
    *inference.MUTANTS,
    *moments.MUTANTS,
    *fits.MUTANTS,
    *local_reports.MUTANTS,
    *streaming.MUTANTS,
    *learners.MUTANTS,
    *workloads.MUTANTS,
]

_HEAD = """# Mutants

A mutant is a mistake that systems like this one have made, or could make. The tests in `tests/audit` put each mutant
into the code on purpose. The check in the same row passes on the correct code and must fail on the mutant.

`tests/audit/test_mutants.py` generates this table and fails if it is stale. To write it again, set
`DISCREET_WRITE_TABLES=1` and run that test.

| mutant | what is broken | caught by | check |
|---|---|---|---|
"""


def rendered() -> str:
    """Returns the page with the table."""
    return _HEAD + "".join(map(_row, MUTANTS))


def _row(mutant: Mutant) -> str:
    check = mutant.caught_by.name.replace("_", " ")
    return f"| {mutant.name} | {mutant.broken} | `{mutant.caught_by.audit}` | {check} |\n"
