import os

import pytest

from discreet.noise import system_bits
from tests.cases import every, try_all
from tests.conftest import steady


def test_all_are_tried_and_those_that_fail_are_named() -> None:
    seen = []

    def check(case: int) -> None:
        seen.append(case)
        if case == 4:
            with pytest.raises(ValueError, match="never"):
                pass
        assert case != 2

    with pytest.raises(BaseExceptionGroup, match="2 of 5 cases failed") as failed:
        try_all(range(1, 6), check)
    assert seen == [1, 2, 3, 4, 5]
    assert [error.__notes__ for error in failed.value.exceptions] == [["in the case 2"], ["in the case 4"]]


def test_no_case_at_all_is_a_failure() -> None:
    with pytest.raises(AssertionError):
        try_all([], lambda _: None)


SEEN: list[tuple[int, str]] = []


@every("number", [1, 2])
@every(("text", "length"), [("a", 1), ("bc", 2)])
def test_every_case_of_both_is_one_test(
    number: int, text: str, length: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(text) == length
    assert not capsys.readouterr().out
    SEEN.append((number, text))


def test_every_case_is_tried_with_every_other() -> None:
    SEEN.clear()
    test_every_case_of_both_is_one_test(capsys=Silent())
    assert SEEN == [(1, "a"), (1, "bc"), (2, "a"), (2, "bc")]


class Silent:
    out = ""

    def readouterr(self) -> "Silent":
        return self


def test_a_case_that_fails_is_named() -> None:
    @every("number", range(3))
    def small(number: int) -> None:
        assert number < 2

    with pytest.raises(BaseExceptionGroup, match="1 of 3 cases failed"):
        small()


def test_what_is_drawn_follows_from_the_name_of_the_test(request: pytest.FixtureRequest) -> None:
    drawn = [system_bits().word() for _ in range(3)]
    with steady(request.node.nodeid):
        assert [system_bits().word() for _ in range(3)] == drawn
    with steady("another"):
        assert system_bits().word() not in drawn
    assert system_bits().private


def test_a_forked_child_draws_bits_of_its_own() -> None:
    with steady("parent"):
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            os.write(write, system_bits().word().to_bytes(8, "big"))
            os._exit(0)
        os.waitpid(child, 0)
        assert int.from_bytes(os.read(read, 8), "big") != system_bits().word()
        os.close(read)
        os.close(write)
