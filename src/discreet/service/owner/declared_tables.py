"""Tables that stewards protected through the service: their declarations, in a file that only the owner writes."""

from __future__ import annotations

import json
import os
from pathlib import Path

from discreet.curator.config.toml_file import load
from discreet.errors import InvalidParameter
from discreet.service.desk import Document


class DeclaredTables:
    """The declarations in a file beside discreet.toml, each as a steward gave it.

    Args:
        path: of the file; it is made with mode 0600 when there is something to keep.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> tuple[Document, ...]:
        """Returns all declarations, in the order in which they were made.

        Raises:
            InvalidParameter: if the file is not as it was written.
        """
        try:
            content = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return ()
        except (OSError, ValueError):
            content = None
        if not isinstance(content, dict) or content.get("version") != 1:
            hint = "Restore it from a backup, or move it away and protect the tables again."
            raise InvalidParameter("tables", str(self._path), "to be as the service wrote it", hint)
        return tuple(content["tables"])

    def add(self, declared: Document) -> None:
        """Keeps one more declaration, durably, in the place of an earlier one of the same table.

        The budget is left out: it is in the book, and may have been amended since. What a change was, the book tells.
        """
        kept = {name: value for name, value in declared.items() if name not in ("budget", "change")}
        known = {each["name"]: each for each in self.read()} | {declared["name"]: kept}  # in its former place: others
        text = json.dumps({"version": 1, "tables": list(known.values())}, indent=1)  # may be on a way over it
        fresh = self._path.with_name(f"{self._path.name}.new")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(self._path)


def require_of_the_service(table: str, config: str) -> None:
    """Refuses to declare a table anew here that the file declares: every worker would find two declarations.

    Raises:
        InvalidParameter: with the way that there is.
    """
    if any(declared.name == table for declared in load(config).tables):
        hint = f"Change it in {Path(config).name}, run `discreet protect`, and start the service again."
        raise InvalidParameter("name", table, "to be a table that was protected here", hint)
