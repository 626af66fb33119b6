"""Which questions SmartNoise SQL takes: each is parsed, checked and priced by the library, and nothing is run.

That is in its favour: functions that its grammar knows and an engine lacks count as answered. Standard library and the
peer only.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import pandas as pd
from snsql import Privacy, from_connection


def refusal(question: dict[str, Any]) -> str:
    """Why a question is not answered; nothing if it is."""
    frame = pd.DataFrame({name: [] for name in question["columns"]})
    metadata = {"": {"db": {question["table"]: question["columns"]}}}
    try:
        reader = from_connection(frame, privacy=Privacy(epsilon=1.0, delta=1e-6), metadata=metadata)
        reader.get_privacy_cost(question["sql"])
    except BaseException as error:  # noqa: BLE001 - whatever a library raises means that it does not answer
        return f"{type(error).__name__}: {error}"[:200] or "refused"
    return ""


def main() -> None:
    warnings.simplefilter("ignore")
    print(json.dumps({question["name"]: refusal(question) for question in json.load(sys.stdin)}))


if __name__ == "__main__":
    main()
