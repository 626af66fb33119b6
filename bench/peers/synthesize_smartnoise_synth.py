"""AIM and MST of smartnoise-synth on codes of a public domain.

Its preprocessing is left out, which would read the values of a column from private rows: the synthesizers' own methods
get what `fit` would give them. Arguments: an .npz file with codes and sizes, "AIM" or "MST", epsilon, delta, a seed,
and the file to write.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
from mbi import Dataset, Domain
from snsynth.aim import AIMSynthesizer
from snsynth.mst import MSTSynthesizer
from snsynth.utils import cdp_rho


def fitted(name: str, data: Any, epsilon: float, delta: float) -> Any:
    """The synthesizer, as its `fit` leaves it."""
    if name == "MST":
        synthesizer = MSTSynthesizer(epsilon=epsilon, delta=delta)
        synthesizer.MST(data, epsilon, delta)
        return synthesizer
    synthesizer = AIMSynthesizer(epsilon=epsilon, delta=delta)
    synthesizer.rho = cdp_rho(epsilon, delta)
    workload = synthesizer.get_workload(data, degree=2, max_cells=synthesizer.max_cells)
    synthesizer.AIM(data, workload)
    return synthesizer


def sampled(synthesizer: Any, columns: list[str], rows: int) -> Any:
    """As many rows, as codes."""
    made = synthesizer.synthesizer.synthetic_data(rows=rows)
    if isinstance(synthesizer, MSTSynthesizer):
        made = synthesizer.undo_compress_fn(made)
    return made.df[columns].to_numpy()


def main(words: list[str]) -> None:
    path, name, epsilon, delta, seed, out = words
    warnings.simplefilter("ignore")
    np.random.seed(int(seed))  # noqa: NPY002 - what the peer draws its choices from; its noise has no seed
    with np.load(path) as found:
        codes, sizes = found["codes"], found["sizes"].tolist()
    columns = [f"col{place}" for place in range(len(sizes))]
    start = time.process_time()
    with contextlib.redirect_stdout(sys.stderr):
        data = Dataset(pd.DataFrame(codes, columns=columns), Domain(columns, sizes))
        made = sampled(fitted(name, data, float(epsilon), float(delta)), columns, len(codes))
    used = time.process_time() - start
    np.savez(out, codes=made.astype(np.int64))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({"seconds": used, "memory": memory}))


if __name__ == "__main__":
    main(sys.argv[1:])
