"""Letter case: every letter of Unicode in upper and in lower case, by one table that is the same on every engine.

The servers of the world know different versions of Unicode and different languages, so none of them is asked. A letter
has at most one counterpart, a single letter again: texts keep their length, and what a text becomes depends on nothing
but the text. The table holds the simple case mappings of Unicode 14.0 (UnicodeData.txt), and German's capital sharp s,
so that it and its small letter are one. No language has rules of its own: in every text I is the capital of i and of
the dotless i, and both the dotted capital I and I become i.

To compare without regard to case, a text is put into upper and then into lower case: letters are the same if either of
the two makes them equal, such as the two small sigmas.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_PAIRS = """
61-7A>41 DF>1E9E E0-F6>C0 F8-FE>D8 FF>178 101=12F>100 133=137>132 13A=148>139 14B=177>14A 17A=17E>179 180>243
183=185>182 188>187 18C>18B 192>191 195>1F6 199>198 19A>23D 19E>220 1A1=1A5>1A0 1A8>1A7 1AD>1AC 1B0>1AF
1B4=1B6>1B3 1B9>1B8 1BD>1BC 1BF>1F7 1C6>1C4 1C9>1C7 1CC>1CA 1CE=1DC>1CD 1DD>18E 1DF=1EF>1DE 1F3>1F1 1F5>1F4
1F9=21F>1F8 223=233>222 23C>23B 23F-240>2C7E 242>241 247=24F>246 250>2C6F 251>2C6D 252>2C70 253>181 254>186
256-257>189 259>18F 25B>190 25C>A7AB 260>193 261>A7AC 263>194 265>A78D 266>A7AA 268>197 269>196 26A>A7AE
26B>2C62 26C>A7AD 26F>19C 271>2C6E 272>19D 275>19F 27D>2C64 280>1A6 282>A7C5 283>1A9 287>A7B1 288>1AE 289>244
28A-28B>1B1 28C>245 292>1B7 29D>A7B2 29E>A7B0 371=373>370 377>376 37B-37D>3FD 3AC>386 3AD-3AF>388 3B1-3C1>391
3C3-3CB>3A3 3CC>38C 3CD-3CE>38E 3D7>3CF 3D9=3EF>3D8 3F2>3F9 3F3>37F 3F8>3F7 3FB>3FA 430-44F>410 450-45F>400
461=481>460 48B=4BF>48A 4C2=4CE>4C1 4CF>4C0 4D1=52F>4D0 561-586>531 10D0-10FA>1C90 10FD-10FF>1CBD 13F8-13FD>13F0
1D79>A77D 1D7D>2C63 1D8E>A7C6 1E01=1E95>1E00 1EA1=1EFF>1EA0 1F00-1F07>1F08 1F10-1F15>1F18 1F20-1F27>1F28
1F30-1F37>1F38 1F40-1F45>1F48 1F51=1F57>1F59 1F60-1F67>1F68 1F70-1F71>1FBA 1F72-1F75>1FC8 1F76-1F77>1FDA
1F78-1F79>1FF8 1F7A-1F7B>1FEA 1F7C-1F7D>1FFA 1F80-1F87>1F88 1F90-1F97>1F98 1FA0-1FA7>1FA8 1FB0-1FB1>1FB8
1FB3>1FBC 1FC3>1FCC 1FD0-1FD1>1FD8 1FE0-1FE1>1FE8 1FE5>1FEC 1FF3>1FFC 214E>2132 2170-217F>2160 2184>2183
24D0-24E9>24B6 2C30-2C5F>2C00 2C61>2C60 2C65>23A 2C66>23E 2C68=2C6C>2C67 2C73>2C72 2C76>2C75 2C81=2CE3>2C80
2CEC=2CEE>2CEB 2CF3>2CF2 2D00-2D25>10A0 2D27>10C7 2D2D>10CD A641=A66D>A640 A681=A69B>A680 A723=A72F>A722
A733=A76F>A732 A77A=A77C>A779 A77F=A787>A77E A78C>A78B A791=A793>A790 A794>A7C4 A797=A7A9>A796 A7B5=A7C3>A7B4
A7C8=A7CA>A7C7 A7D1>A7D0 A7D7=A7D9>A7D6 A7F6>A7F5 AB53>A7B3 AB70-ABBF>13A0 FF41-FF5A>FF21 10428-1044F>10400
104D8-104FB>104B0 10597-105A1>10570 105A3-105B1>1057C 105B3-105B9>1058C 105BB-105BC>10594 10CC0-10CF2>10C80
118C0-118DF>118A0 16E60-16E7F>16E40 1E922-1E943>1E900
"""
"""Small letters and, after >, the capital of the first: "61-7A" is every code point from one to the other, "101=12F"
every second one."""

_ONLY_UP = """
B5>39C 131>49 17F>53 1C5>1C4 1C8>1C7 1CB>1CA 1F2>1F1 345>399 3C2>3A3 3D0>392 3D1>398 3D5>3A6 3D6>3A0 3F0>39A
3F1>3A1 3F5>395 1C80>412 1C81>414 1C82>41E 1C83-1C84>421 1C85>422 1C86>42A 1C87>462 1C88>A64A 1E9B>1E60 1FBE>399
"""
"""Further letters with a capital, which is another one's."""

_ONLY_DOWN = "130>69 1C5>1C6 1C8>1C9 1CB>1CC 1F2>1F3 3F4>3B8 2126>3C9 212A>6B 212B>E5"
"""Capitals and letters of mixed case whose small letter is another one's."""

_RUN = re.compile(r"([0-9A-F]+)(?:([-=])([0-9A-F]+))?>([0-9A-F]+)")


def _parse_case_pairs(table: str) -> Iterator[tuple[int, int]]:
    for first, steps, last, onto in _RUN.findall(table):
        start = int(first, 16)
        for place in range(start, int(last or first, 16) + 1, 2 if steps == "=" else 1):
            yield place, int(onto, 16) + place - start


UPPER: Mapping[int, int] = {**dict(_parse_case_pairs(_PAIRS)), **dict(_parse_case_pairs(_ONLY_UP))}
"""For every code point that has one, that of its capital."""

LOWER: Mapping[int, int] = {
    **{large: small for small, large in _parse_case_pairs(_PAIRS)},
    **dict(_parse_case_pairs(_ONLY_DOWN)),
}
"""For every code point that has one, that of its small letter."""


def upper_case(text: str) -> str:
    """Puts every letter of a text into upper case.

    >>> upper_case("Łódź, straße"), upper_case("ςσ")
    ('ŁÓDŹ, STRAẞE', 'ΣΣ')
    """
    return text.translate(UPPER)


def lower_case(text: str) -> str:
    """Puts every letter of a text into lower case.

    >>> lower_case("ŁÓDŹ, STRAẞE"), lower_case("İI")
    ('łódź, straße', 'ii')
    """
    return text.translate(LOWER)
