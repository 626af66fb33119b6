"""What generators give for a small table and a seed, as it was written once: ``frozen_tables.json``.

Written again by ``python -m tests.synthetic.frozen_tables``, which a change of what is measured, fitted or drawn needs.
Such a change is told in the changelog: ledgers keep models that the version before has fitted.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from discreet.noise import SeededBits
from discreet.noise.experiment import uniforms
from discreet.synthetic import AIM, MST, AllPairs, Independent, Model
from discreet.synthetic.generator import Generator

PATH = Path(__file__).with_name("frozen_tables.json")
DOMAIN: dict[str, Any] = {"sex": ["F", "M"], "age": range(0, 90, 30), "ward": ["A", "B", "C"], "sick": [0, 1]}
FORBIDDEN = [{"age": range(30), "ward": ["C"]}]
EPSILON, DELTA, SEED, DRAWN = 2, 1e-6, 17, 24

GENERATORS: dict[str, Generator] = {
    make.__name__: make(epsilon=EPSILON, delta=DELTA, random_state=SEED) for make in (Independent, MST, AIM, AllPairs)
}


def frame() -> dict[str, list[Any]]:
    """Two hundred rows of columns that depend on each other, some of them missing."""
    found: dict[str, list[Any]] = {name: [] for name in DOMAIN}
    for one, two, three, four in uniforms((200, 4), bits=SeededBits(SEED)).tolist():
        found["sex"].append(None if four < 0.05 else "FM"[one < 0.4])
        found["age"].append(90 * (two if one < 0.4 else two**2))
        found["ward"].append("ABC"[int(3 * (three + two) / 2)])
        found["sick"].append(int(two + four > 1))
    return found


def given(name: str) -> dict[str, Any]:
    """All that is kept of what a generator gives."""
    model: Model = GENERATORS[name].fit(frame(), domain=DOMAIN, forbidden=FORBIDDEN)
    return {
        "rho": str(model.rho),
        "charges": [[list(about), str(rho)] for about, rho in model.charges],
        "measured": [[list(one.attributes), one.residual, one.values.tolist()] for one in model.measurements],
        "total": model.rows,
        "rows": model.sample_codes(DRAWN, bits=SeededBits(SEED)).tolist(),
    }


if __name__ == "__main__":
    written = {name: given(name) for name in GENERATORS}
    PATH.write_text(json.dumps(written) + "\n")
