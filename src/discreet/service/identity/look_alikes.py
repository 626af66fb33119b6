"""Names that a reader takes for one another: other scripts, full width, case, and what is not seen at all.

The table holds the letters of Latin, Cyrillic, Greek, Armenian and Cherokee that Unicode's list of confusables (UTS 39)
gives the shape of a Latin letter in common fonts, and the digits 0 and 1.
"""

from __future__ import annotations

import unicodedata

_SHAPES = (
    "0030o 0031l 007cl 0131i 0237j 0251a 0261g 0269i 0391A 0392B 0395E 0396Z 0397H 0399I 039aK 039cM 039dN 039fO",
    "03a1P 03a4T 03a5Y 03a7X 03b1a 03b3y 03b7n 03b9i 03bak 03bdv 03bfo 03c1p 03c4t 03c5u 03c7x 03c9w 03f2c 03f3j",
    "03f9C 03faM 0405S 0406I 0408J 0410A 0412B 0415E 041aK 041cM 041dH 041eO 0420P 0421C 0422T 0423Y 0425X 0430a",
    "0435e 043ak 043eo 0440p 0441c 0443y 0445x 0455s 0456i 0458j 0474V 0475v 04baH 04bbh 04c0I 04cfl 0501d 051aQ",
    "051bq 051cW 051dw 0566q 0570h 0575j 0578n 057du 0581g 0584p 0585o 13a0D 13a1R 13a2T 13aaA 13abJ 13acE 13b3W",
    "13b7M 13bbH 13c0G 13c3Z 13d9V 13daS 13deL 13dfC 13e2P 13e6K 13f4B 1d04c 1d0fo 1d20v 1d21w 1d22z a731s",
)
"""Code points in hexadecimal, each with the Latin letter that it looks like."""

_LIKE = {int(pair[:-1], 16): pair[-1] for line in _SHAPES for pair in line.split()}
_CAPITAL_I = {ord("I"): "l"}  # for the name as written only: in capitals, every i would become an l
_UNSEEN = {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)}
"""Letters and marks that show nothing; what Unicode calls format (zero-width joiners, say) is of category Cf."""


def shapes(name: str) -> frozenset[str]:
    r"""Returns what a name looks like, as it is written, in small letters and in capitals.

    >>> bool(shapes("ana") & shapes("\u0430n\u0430")), bool(shapes("ANA") & shapes("\uff41na\u200b"))
    (True, True)
    >>> bool(shapes("ana") & shapes("ann")), bool(shapes("mia") & shapes("mla"))
    (False, False)
    """
    wide = unicodedata.normalize("NFKC", name)
    seen = "".join(c for c in wide if unicodedata.category(c) != "Cf" and ord(c) not in _UNSEEN)
    plain = " ".join(seen.split())
    variants = (plain.translate(_LIKE | _CAPITAL_I), plain.lower().translate(_LIKE), plain.upper().translate(_LIKE))
    return frozenset(unicodedata.normalize("NFKC", each.casefold()) for each in variants)


def look_alike(one: str, other: str) -> bool:
    """Returns whether two names can be taken for one another."""
    return bool(shapes(one) & shapes(other))
