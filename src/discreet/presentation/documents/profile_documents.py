"""A profile as a document: figures with their intervals, and the table that is printed."""

from __future__ import annotations

from discreet.measurement.profile.profile import CONFIDENCE, QUANTILES, Profile
from discreet.measurement.profile.sizes import Sizes
from discreet.presentation.documents.json_values import Document, write_amount, write_figure

_KINDS = {"outside": "clipped", "missing": "missing"}


def profile_document(profile: Profile) -> Document:
    """Returns what a profile tells; figures are value, low, high, with 95 % confidence each.

    "values" has for each column which share of its counted values is clipped to bounds, and which is missing. A profile
    whose rows are people has neither "rows_per_person" nor "groups".
    """
    limits = profile.suggested()
    return {
        "kind": "profile",
        "table": profile.table,
        "epsilon": write_amount(profile.epsilon),
        "private": profile.private,
        "by_row": profile.by_row,
        "most_rows": profile.most_rows,
        "confidence": write_amount(CONFIDENCE),
        "people": write_figure(profile.people()),
        "without_id": write_figure(profile.nobodys(1 - CONFIDENCE)),
        "rows_per_person": None if profile.by_row else _quantiles(profile.rows),
        "groups": _groups(profile),
        "values": {name: _values(profile, name) for name in profile.plan.columns},
        "suggested": {"groups": limits.groups, "rows": limits.rows},
        "text": str(profile),
    }


def _quantiles(sizes: Sizes) -> Document:
    return {write_amount(quantile): sizes.quantile(quantile) for quantile in QUANTILES}


def _groups(profile: Profile) -> list[Document]:
    limit = profile.plan.limits.groups
    known = ((keys, profile.groups(keys)) for keys in profile.plan.by)
    return [
        {"by": list(keys), "limit": limit, "above": write_figure(sizes.share_above(limit))}
        for keys, sizes in known
        if sizes is not None
    ]


def _values(profile: Profile, column: str) -> Document:
    return {name: write_figure(profile.share_of_values(kind, column)) for kind, name in _KINDS.items()}
