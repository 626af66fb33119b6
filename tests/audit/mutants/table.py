"""All mutants, and the table of them in the documentation."""

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

Mistakes that systems like this one have made, or could make. Each is put into the code on purpose by `tests/audit`,
and the check beside it must notice: it passes on the code as it is and fails on the mutant. The table is compared with
the mutants that there are by a test, which writes it anew if `DISCREET_WRITE_TABLES` is set.

| mutant | what is broken | caught by | check |
|---|---|---|---|
"""


def rendered() -> str:
    """The table as a page."""
    return _HEAD + "".join(map(_row, MUTANTS))


def _row(mutant: Mutant) -> str:
    check = mutant.caught_by.name.replace("_", " ")
    return f"| {mutant.name} | {mutant.broken} | `{mutant.caught_by.audit}` | {check} |\n"
