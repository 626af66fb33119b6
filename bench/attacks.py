"""The attacks on real data and at size: how often each succeeds, raw and private, next to what is claimed and allowed.

Data that are not there are said to be missing, and what needs them is left out.

    python bench/attacks.py
"""

from __future__ import annotations

import _attacks_auditing
import _attacks_linking
import _attacks_rebuilding
import _attacks_tracing

if __name__ == "__main__":
    for part in (_attacks_linking, _attacks_rebuilding, _attacks_tracing, _attacks_auditing):
        part.run()
