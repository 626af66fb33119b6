"""What limits, bounds and noise mean for an answer, in sentences: functions of public facts alone."""

from __future__ import annotations

from discreet.measurement.program.program import Program
from discreet.plan.analysis.group_keys import rest_of


def notes(program: Program) -> tuple[str, ...]:
    """Everything a reader must know to read the numbers right."""
    own = _notes(program)
    shown = ["Groups that are not shown are missing in everything that is computed from several groups."]
    gathers, count = program.contribution.gathers, 1 + len(program.beside)
    shared = [f"The budget is shared equally by {count} questions, which are released together."]
    return tuple(
        dict.fromkeys(
            [
                *own,
                *(note for one in program.beside for note in _notes(one)),
                *(shown if program.selection is not None and program.question.steps and not gathers else []),
                *(shared if program.beside else []),
            ]
        )
    )


def _notes(program: Program) -> tuple[str, ...]:
    limits, reading = program.contribution.limits, program.reading
    said = []
    if reading.bounding is not None:
        said.append(
            f"At most {_times(limits.rows, 'row')} per {program.people} and group are counted"
            + (f", in at most {_times(limits.groups, 'group')}" if program.contribution.grouped else "")
            + (" of each grouping." if program.groupings else ".")
        )
        said.append(nobodys(program.people, "counted"))
    if any(statistic.kind in ("sum", "product") for statistic in reading.statistics):
        said.append("Values are clipped to their public bounds before they are added.")
    said += list(dict.fromkeys(note for estimator in program.estimators.values() for note in estimator.notes))
    if reading.public_keys is not None:
        said.append(
            f"Groups are those of public keys, empty ones included; rows with other keys are {_elsewhere(program)}."
        )
    if program.selection is not None:
        said.append(str(program.selection))
    if program.contribution.gathers and program.question.rest is not None:
        said.append(f"All groups that are not shown are added up under {program.question.rest.value!r}.")
    if program.noise.scales:
        law = "Laplace" if program.noise.law == "laplace" else "Gaussian"
        said.append(f"Noise is exact discrete {law} noise; a count can come out negative.")
    return tuple(said)


def nobodys(people: str, used: str) -> str:
    """That rows of nobody are left out, which every answer about rows of people says.

    >>> nobodys("patient", "counted")
    'Rows without patient (NULL or blank) are not counted.'
    """
    return f"Rows without {people} (NULL or blank) are not {used}."


def _elsewhere(program: Program) -> str:
    """Where rows are that have none of the public keys."""
    rests = [rest_of(key.expression) for key in program.question.keys]
    labels = dict.fromkeys(repr(rest.value) for rest in rests if rest is not None)
    return f"counted under {' and '.join(labels)}" if rests and None not in rests else "not counted"


def _times(count: int, word: str) -> str:
    return f"{count} {word}" + ("" if count == 1 else "s")
