"""Frequent strings that no list named before, found block by block from their beginnings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import check
from discreet.check import assign
from discreet.dataclass import dataclass
from discreet.errors import InvalidParameter, InvalidValue
from discreet.lazy import special
from discreet.local.oracles.local_hashing import checked_hashes, hash_support, joined_bits, response, supports
from discreet.local.oracles.oracle import checked_epsilon
from discreet.local.oracles.reports import Reports, accept_reports, canonical
from discreet.local.oracles.walsh_hadamard import parity
from discreet.mechanisms.mechanism import CONFIDENCE
from discreet.mechanisms.randomized_response import clopper_pearson
from discreet.noise import Bits, source_of, uniform_below
from discreet.privacy import Estimate
from discreet.privacy.events import Event, Pure
from discreet.report.display import Display, DisplayMixin, percent

Ints = NDArray[np.int64]

LONGEST = 64
_BLOCK_BITS = 10  # of a block of symbols, if one symbol has no more: wide blocks need fewer groups of people
_BYTES = 255  # symbols of UTF-8; a zero byte ends a text
_RARE = 0.00135  # of counts of strings that no person has reach one that is followed: 3 standard deviations, or more


@dataclass(frozen=True, slots=True, eq=False)
class FrequentStrings(DisplayMixin, Mapping[str, Estimate]):
    """The strings that were found, the most frequent first, each with its share of all people.

    Their intervals cover all at once: with the stated confidence, none of them, and none of those that were looked at
    and left out, misses its share.
    """

    found: dict[str, Estimate]
    confidence: Fraction

    def __getitem__(self, text: str) -> Estimate:
        return self.found[text]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def _display(self) -> Display:
        head = f"share [{percent(self.confidence)} interval]"
        rows = [(text, str(estimate)) for text, estimate in self.found.items()]
        return Display(columns=("string", head), rows=rows, numbers=[head], facts={"Strings": str(len(self))})


@dataclass(frozen=True, slots=True, init=False)
class HeavyHitters:
    """Finds frequent strings: each person reports the beginning of theirs, of a length drawn at random.

    A string is cut into blocks of symbols. A client draws a number of blocks evenly and sends the randomized hash of so
    many, as `LocalHashing` does. The aggregator estimates all first blocks from those who reported one, follows the
    clear ones by all second blocks with the reports of two, and so on (prefix extending method: Wang, Li, Jha 2021).

    Args:
        epsilon: above 0.
        length: the most symbols of a string; longer ones are cut.
        alphabet: the symbols, e.g. "abc"; None takes any text, byte by byte in UTF-8.
        most: how many beginnings are followed at a time.

    Raises:
        InvalidParameter: outside these domains.

    Formal guarantee: epsilon-DP for the person who reports: the number of blocks and the hash function do not depend on
    the string, and given them a report is randomized response.

    >>> finder = HeavyHitters(epsilon=8, length=4, alphabet="abcdefghijklmnopqrstuvwxyz")
    >>> finder.levels
    2
    >>> found = finder.estimate(finder.privatize(["anna"] * 300 + ["otto"] * 200))
    >>> list(found)
    ['anna', 'otto']
    """

    epsilon: Fraction
    length: int
    alphabet: str | None
    most: int
    hashes: int

    def __init__(self, *, epsilon: check.Number, length: int = 16, alphabet: str | None = None, most: int = 32) -> None:
        level = checked_epsilon(epsilon)
        if alphabet is not None and not 2 <= len(set(check.label(alphabet=alphabet))) == len(alphabet) <= _BYTES:
            condition = f"to hold from 2 to {_BYTES} different symbols"
            raise InvalidParameter("alphabet", alphabet, condition, "List each symbol once, e.g. 'abc'.")
        assign(
            self,
            epsilon=level,
            length=check.integer(length=length, at_least=1, at_most=LONGEST),
            alphabet=alphabet,
            most=check.integer(most=most, at_least=1, at_most=1 << 12),
            hashes=checked_hashes(level, None),
        )

    @property
    def event(self) -> Event:
        """Returns what one report costs its sender."""
        return Pure(self.epsilon)

    @property
    def parameters(self) -> dict[str, Any]:
        """Returns the public parameters that a client needs, as JSON holds them; reports carry them as their tag."""
        fields = {"alphabet": self.alphabet, "epsilon": str(self.epsilon), "hashes": self.hashes}
        return {**fields, "length": self.length, "oracle": type(self).__name__}

    @property
    def levels(self) -> int:
        """Returns the number of blocks of a string, and of groups that people fall into."""
        return -(-self.length // self._symbols)

    @property
    def _symbol_bits(self) -> int:
        return (_BYTES if self.alphabet is None else len(self.alphabet)).bit_length()

    @property
    def _symbols(self) -> int:
        """Returns how many symbols a block has."""
        return max(1, min(self.length, _BLOCK_BITS // self._symbol_bits))

    @property
    def _hash_bits(self) -> int:
        return self.hashes.bit_length() - 1

    @property
    def _word(self) -> int:
        """Returns how many bits a block has."""
        return self._symbols * self._symbol_bits

    def privatize(self, values: Any, *, bits: Bits | None = None) -> Reports:
        """Returns one report for each string, or for the one that is given: the client's side.

        Args:
            values: texts; what is longer than `length` is cut.
            bits: the source of randomness; None is the secure one.

        Raises:
            InvalidValue: if one of them is no text, or has symbols that the alphabet does not; nothing was drawn then.
        """
        source = source_of(bits)
        blocks = self._blocks(values)
        level = uniform_below(self.levels, len(blocks), bits=source)
        masks = uniform_below(1 << self._word, (len(blocks), self._hash_bits, self.levels), bits=source)
        masks *= np.arange(self.levels) <= level[:, None, None]  # blocks beyond those reported are not hashed
        hashed = joined_bits(parity(np.bitwise_xor.reduce(masks & blocks[:, None, :], axis=2)))
        sent = response(self.epsilon, self.hashes).release(hashed, bits=source)
        rows = np.column_stack([level, sent, masks.reshape(len(blocks), self._hash_bits * self.levels)])
        return Reports(canonical(self.parameters), rows, private=source.private)

    def _blocks(self, values: Any) -> Ints:
        """Returns strings as rows of blocks; symbols are numbered from 1, and 0 comes after the last."""
        listed = [values] if isinstance(values, str) else values.tolist() if hasattr(values, "tolist") else values
        if not isinstance(listed, Iterable):
            raise _foreign()
        rows = [self._encode_text(text) for text in listed]
        symbols = np.zeros((len(rows), self.levels * self._symbols), dtype=np.int64)
        for row, numbers in zip(symbols, rows, strict=True):
            row[: len(numbers)] = numbers
        weights = 1 << (self._symbol_bits * np.arange(self._symbols, dtype=np.int64))
        return np.asarray(symbols.reshape(len(rows), self.levels, self._symbols) @ weights)

    def _encode_text(self, text: Any) -> list[int]:
        if not isinstance(text, str):
            raise _foreign()
        if self.alphabet is None:
            numbers = list(text.encode("utf-8", errors="replace"))
        else:
            numbers = [self.alphabet.find(symbol) + 1 for symbol in text]
        if 0 in numbers:
            raise _foreign()
        return numbers[: self.length]

    def estimate(self, reports: Any, *, confidence: check.Number = CONFIDENCE, drop: bool = False) -> FrequentStrings:
        """Returns the strings whose share is above zero beyond doubt, with their shares: the aggregator's side.

        Shares are estimated from those who reported whole strings, without bias; the strings to look at were chosen
        from the reports of others. Intervals are exact (Clopper, Pearson) and hold for all strings that were looked at
        together (Bonferroni).

        Args:
            reports: from `privatize` of an oracle with the same parameters, or an array of their rows.
            confidence: of all intervals together.
            drop: whether rows that no client makes are left out; they are refused otherwise.

        Raises:
            InvalidParameter: for reports of another oracle, for none, and for rows that no client makes.
        """
        chance = check.probability(confidence=confidence)
        columns = (2 + self._hash_bits * self.levels,)
        rows, _, private = accept_reports(reports, canonical(self.parameters), columns, self._valid, drop=drop)
        survivors = np.zeros((1, 0), dtype=np.int64)
        for level in range(self.levels - 1):
            beginnings, counts, people = self._extend_survivors(rows, survivors, level)
            survivors = beginnings[self._clear(counts, people)]
        strings, counts, people = self._extend_survivors(rows, survivors, self.levels - 1)
        return self._build_frequent_strings(strings, counts, people, chance, private=private)

    def _extend_survivors(self, rows: NDArray[Any], survivors: Ints, level: int) -> tuple[Ints, Ints, int]:
        """Returns all ways to go on from the survivors by one block, how many reports support each, and of how many."""
        some = rows[rows[:, 0] == level].astype(np.int64)
        masks = some[:, 2:].reshape(len(some), self._hash_bits, self.levels)
        allowed = self._allowed_blocks()
        grown, counts = [np.zeros((0, level + 1), dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
        for beginning in survivors:
            known = joined_bits(parity(np.bitwise_xor.reduce(masks[:, :, :level] & beginning, axis=2)))
            left = np.column_stack([masks[:, :, level], some[:, 1] ^ known])  # what the last block's hash would be
            ended = level > 0 and int(beginning[-1]) >> (self._word - self._symbol_bits) == 0
            words = np.zeros(1, dtype=np.int64) if ended else allowed
            counts.append(supports(left, self.hashes, self._word)[words])
            grown.append(np.column_stack([np.tile(beginning, (len(words), 1)), words]))
        return np.concatenate(grown), np.concatenate(counts), len(some)

    def _allowed_blocks(self) -> Ints:
        """Returns the blocks that strings can have: no symbol comes after the end, and each is in the alphabet."""
        words = np.arange(1 << self._word, dtype=np.int64)
        shifts = self._symbol_bits * np.arange(self._symbols, dtype=np.int64)
        symbols = (words[:, None] >> shifts) & ((1 << self._symbol_bits) - 1)
        ended = np.maximum.accumulate(symbols == 0, axis=1)
        known = symbols <= (_BYTES if self.alphabet is None else len(self.alphabet))
        return np.asarray(words[(known & (~ended | (symbols == 0))).all(axis=1)])

    def _clear(self, counts: Ints, people: int) -> Ints:
        """Returns the places of the largest counts that are clearly above those of strings that no person has."""
        if not people:
            return np.zeros(0, dtype=np.int64)
        order = np.argsort(-counts, kind="stable")[: self.most]
        as_large = special.bdtrc(counts[order] - 1.0, people, 1 / self.hashes)
        return np.asarray(order[as_large < min(_RARE, 1 / len(counts))])  # at most one string without people passes

    def _build_frequent_strings(
        self, strings: Ints, counts: Ints, people: int, confidence: Fraction, *, private: bool
    ) -> FrequentStrings:
        if not people or not len(strings):
            return FrequentStrings({}, confidence)
        p, q = (float(end.low) for end in hash_support(self.epsilon, self.hashes, 60))
        ends = clopper_pearson(counts, people, float(1 - confidence) / len(strings))
        value, low, high = ((share - q) / (p - q) for share in (counts / people, *ends))
        found = {
            self._text(strings[at]): Estimate(
                float(value[at]), float(low[at]), float(high[at]), self.event, confidence=confidence, private=private
            )
            for at in np.argsort(-value, kind="stable")
            if low[at] > 0
        }
        return FrequentStrings(found, confidence)

    def _text(self, blocks: Ints) -> str:
        shifts = self._symbol_bits * np.arange(self._symbols, dtype=np.int64)
        symbols = ((blocks[:, None] >> shifts) & ((1 << self._symbol_bits) - 1)).ravel().tolist()
        numbers = symbols[: symbols.index(0)] if 0 in symbols else symbols
        if self.alphabet is None:
            return bytes(numbers).decode("utf-8", errors="replace")
        return "".join(self.alphabet[number - 1] for number in numbers)

    def _valid(self, rows: NDArray[Any]) -> NDArray[np.bool_]:
        level, sent, masks = rows[:, 0], rows[:, 1], rows[:, 2:]
        known = (level >= 0) & (level < self.levels) & (sent >= 0) & (sent < self.hashes)
        later = np.arange(self.levels) > level[:, None, None]
        blank = (masks.reshape(len(rows), self._hash_bits, self.levels) * later == 0).all(axis=(1, 2))
        return np.asarray(known & ((masks >= 0) & (masks < 1 << self._word)).all(axis=1) & blank)

    def influence(self, n: int) -> float:
        """Returns the most that one report can move a share, if n people reported whole strings.

        About one in `levels` of all people does; a client that lies about its number of blocks is one more of them.
        """
        p, q = hash_support(self.epsilon, self.hashes, 60)
        return 1 / (check.integer(n=n, at_least=1) * float((p - q).low))


def _foreign() -> InvalidValue:
    return InvalidValue("to be a text of the alphabet's symbols", "Replace other symbols first.")
