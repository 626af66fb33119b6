import pytest

from tests.cases import try_all


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
