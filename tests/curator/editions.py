"""Curators of before: their programs and their releases are those of an earlier edition."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from discreet.curator import measurement_plan
from discreet.curator.asking import performer
from discreet.curator.replay.stored_releases import pack
from discreet.measurement.program.program import Edition, choose


def packed(edition: Edition) -> Callable[..., str]:
    """Returns `pack` as it was, for releases by the rules of an edition."""
    return lambda *given, **more: json.dumps(json.loads(pack(*given, **more)) | {"version": int(edition)})


def as_of(patch: pytest.MonkeyPatch, edition: Edition) -> None:
    """Has all questions be planned and stored by the rules of an edition."""
    patch.setattr(measurement_plan, "choose", lambda *given, **more: choose(*given, **{**more, "edition": edition}))
    patch.setattr(performer, "pack", packed(edition))
