"""In how many files of the library each argument of each verb is spelled out, and how many lines the faces have.

A file counts when the name of the argument stands in it as a word of its own, whatever it means there: names such as
`rows` and `table` are words of the language, so that the arguments that are one verb's alone tell most.
"""

from __future__ import annotations

import re
from pathlib import Path

from discreet.requests.request import arguments
from discreet.requests.verb_table import VERBS

SOURCE = Path(__file__).parents[1] / "src" / "discreet"
FACES = ("cli", "service/api", "service/page", "service/wire", "service/acts", "remote", "presentation/documents")
MOST_FILES, MOST_LINES = 6, 12_000
_WORD = re.compile(r"\w+")


def main() -> None:
    """Prints a line for each argument, and one for each face."""
    words = {path: set(_WORD.findall(path.read_text(encoding="utf-8"))) for path in SOURCE.rglob("*.py")}
    verbs: dict[str, list[str]] = {}
    for verb in VERBS.values():
        for argument in arguments(verb.request):
            verbs.setdefault(argument.name, []).append(verb.name)
    print(f"{'argument':16} {'files':>5}  verbs")
    for name in sorted(verbs, key=lambda name: (len(spelled_out(name, words)), name)):
        print(f"{name:16} {len(spelled_out(name, words)):5}  {', '.join(verbs[name])}")
    print(f"\n{'max_epsilon':16} {', '.join(spelled_out('max_epsilon', words))}")
    print(f"\n{'face':24} {'lines':>6} {'templates':>10}")
    for face in FACES:
        print(f"{face:24} {lines(face):6} {lines(face, 'html'):10}")
    print(f"{'all':24} {sum(map(lines, FACES)):6} of {MOST_LINES} wanted at most")


def spelled_out(name: str, words: dict[Path, set[str]]) -> list[str]:
    """Returns the files in which a name stands."""
    return sorted(str(path.relative_to(SOURCE)) for path, found in words.items() if name in found)


def lines(face: str, ending: str = "py") -> int:
    """Returns the lines of a face: of its programs, or of other files by their ending."""
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in (SOURCE / face).rglob(f"*.{ending}"))


if __name__ == "__main__":
    main()
