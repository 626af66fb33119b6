"""Models that were saved by the first version: they load, say what they said, and are written the same again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from discreet import learn
from tests.cases import every
from tests.learn.specimens import SPECIMENS, Specimen

SAVED = json.loads(Path(__file__).with_name("models_v1.json").read_text())


@every("specimen", [one for one in SPECIMENS if one.name in SAVED])
def test_old_models_load(specimen: Specimen) -> None:
    old = SAVED[specimen.name]
    model = learn.from_json(old["text"])
    rows = specimen.data[0][: len(old["said"])]
    said = model.predict(rows) if hasattr(model, "predict") else model.transform(rows)
    if said.dtype.kind == "f":
        assert said == pytest.approx(np.array(old["said"]), rel=1e-9)
    else:
        assert said.tolist() == old["said"]
    assert learn.to_json(model) == old["text"]
