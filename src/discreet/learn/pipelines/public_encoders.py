"""Encoders and a scaler by public rules: `fit` reads no value, so that nothing is paid for and nothing is learned.

Every value has a meaning in them: one that is missing, of another type or of no category is no error, because an error
would reveal that it occurs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from discreet import check
from discreet.errors import InvalidParameter
from discreet.lazy import nw
from discreet.learn.features import ends
from discreet.learn.row_inputs import bounds_by_place, convert_table, is_table, rows_to_predict

Floats = NDArray[np.float64]

_CATEGORIES = "Pass categories={'ward': ['A', 'B']}, or a list for each column; they are never read from the data."
_BOUNDS = "Pass public limits bounds=(low, high), or by name; they are never read from the data."


class PublicTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no annotations
    """A transformer by a public rule.

    Formal guarantee: `fit` depends on the number of columns and on their names alone, and `transform` makes of each row
    a function of that row and of parameters; so it has no price, before private steps or after them.
    """

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  # scikit-learn's interface
        """Notes how many columns there are, and their names; reads no value.

        Raises:
            InvalidParameter: if what is declared does not fit the columns.
        """
        validate_data(self, convert_table(X), skip_check_array=True)
        self._check(self.n_features_in_, getattr(self, "feature_names_in_", None))
        return self

    @abstractmethod
    def _check(self, count: int, names: Sequence[str] | None) -> None:
        """Refuses declarations that do not fit so many columns of these names."""

    def __sklearn_tags__(self) -> Any:
        """Values of any kind are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.requires_fit = True
        return tags


class _CategoryEncoder(PublicTransformer):
    """Holds what both encoders share: declared categories, and the place of each value among them."""

    def __init__(self, *, categories: Any = None) -> None:
        self.categories = categories

    def __sklearn_tags__(self) -> Any:
        """Texts are the usual input of these encoders."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def lists(self, count: int, names: Sequence[str] | None) -> list[list[Any]]:
        """Returns the categories of each column, in the order of the columns.

        Raises:
            InvalidParameter: if they are missing, empty, repeated or for other columns.
        """
        given = self.categories
        if isinstance(given, Mapping):
            order = list(given) if names is None else list(names)
            if set(order) != set(given):
                told = f"to have the columns {sorted(map(str, order))} and no other"
                raise InvalidParameter("categories", sorted(map(str, given)), told, _CATEGORIES)
            given = [given[name] for name in order]
        if not isinstance(given, list | tuple) or len(given) != count:
            raise InvalidParameter("categories", self.categories, f"to be lists for {count} columns", _CATEGORIES)
        return [_distinct(each) for each in given]

    def _check(self, count: int, names: Sequence[str] | None) -> None:
        self.lists(count, names)

    def _places(self, X: Any) -> tuple[list[NDArray[np.int64]], list[list[Any]]]:
        """Returns the place of every value among the categories of its column, -1 for none, and the categories."""
        check_is_fitted(self, "n_features_in_")
        validate_data(self, convert_table(X), reset=False, skip_check_array=True)
        lists = self.lists(self.n_features_in_, getattr(self, "feature_names_in_", None))
        return [_among(column, known) for column, known in zip(_columns(X), lists, strict=True)], lists


class PublicOneHotEncoder(_CategoryEncoder):
    """One column of 0 and 1 for each declared category; any other value is 0 in all of them.

    Args:
        categories: lists of categories by the name of the column, or one list for each column.

    Formal guarantee: that of `PublicTransformer`; what comes out lies between 0 and 1.

    >>> encoder = PublicOneHotEncoder(categories=[["A", "B"], [1, 2, 3]])
    >>> encoder.fit_transform([["B", 1], ["?", 3]]).tolist()
    [[0.0, 1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
    >>> encoder.get_feature_names_out().tolist()
    ['x0=A', 'x0=B', 'x1=1', 'x1=2', 'x1=3']
    """

    def transform(self, X: Any) -> Floats:
        """Encodes rows as columns of 0 and 1."""
        places, lists = self._places(X)
        parts = [
            (column[:, None] == np.arange(len(known))).astype(np.float64)
            for column, known in zip(places, lists, strict=True)
        ]
        return np.hstack(parts)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Returns the names column=category."""
        check_is_fitted(self, "n_features_in_")
        names = _names(self, input_features)
        lists = self.lists(self.n_features_in_, getattr(self, "feature_names_in_", None))
        found = [f"{name}={each}" for name, known in zip(names, lists, strict=True) for each in known]
        return np.array(found, dtype=object)


class PublicOrdinalEncoder(OneToOneFeatureMixin, _CategoryEncoder):  # type: ignore[misc]  # no annotations
    """The place of a value among the declared categories of its column, from 0; any other value is missing (NaN).

    Args:
        categories: lists of categories by the name of the column, or one list for each column.

    Formal guarantee: that of `PublicTransformer`; what comes out lies between 0 and one less than the number of
    categories, or is missing, which every learner takes for the middle.

    >>> PublicOrdinalEncoder(categories=[["low", "mid", "high"]]).fit_transform([["mid"], ["?"]]).tolist()
    [[1.0], [nan]]
    """

    def transform(self, X: Any) -> Floats:
        """Encodes rows as places of categories."""
        places, _ = self._places(X)
        found = np.stack(places, axis=1).astype(np.float64)
        return np.where(found < 0, np.nan, found)


class PublicScaler(OneToOneFeatureMixin, PublicTransformer):  # type: ignore[misc]  # no annotations
    """Moves declared bounds to 0 and 1, or to another range; what lies outside is clipped, what is missing stays so.

    Args:
        bounds: public limits (low, high), numbers, lists with one for each column, or pairs by name.
        feature_range: where the limits are moved.

    Formal guarantee: that of `PublicTransformer`; what comes out lies within `feature_range` or is missing.

    >>> PublicScaler(bounds=(0, 120)).fit_transform([[30], [600]]).tolist()
    [[0.25], [1.0]]
    """

    def __init__(self, *, bounds: Any = None, feature_range: Any = (0, 1)) -> None:
        self.bounds = bounds
        self.feature_range = feature_range

    def __sklearn_tags__(self) -> Any:
        """Sparse matrices are written out."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002  # scikit-learn's interface
        """Notes how many columns there are, and their names; whether they hold numbers is a matter of their type."""
        options: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": False, "accept_sparse": True}
        validate_data(self, convert_table(X), ensure_min_samples=0, **options)
        self._check(self.n_features_in_, getattr(self, "feature_names_in_", None))
        return self

    def transform(self, X: Any) -> Floats:
        """Scales rows to the range, with the public bounds."""
        check_is_fitted(self, "n_features_in_")
        rows = rows_to_predict(self, X)
        low, high = self._limits(self.n_features_in_, getattr(self, "feature_names_in_", None))
        least, most = self.reach
        with np.errstate(over="ignore", invalid="ignore"):
            part = (np.clip(rows, low, high) - low) / (high - low)
        return np.asarray(np.clip(least + part * (most - least), least, most))

    @property
    def reach(self) -> tuple[float, float]:
        """Returns the range of what comes out."""
        low, high = check.limits(feature_range=self.feature_range)
        return float(low), float(high)

    def _check(self, count: int, names: Sequence[str] | None) -> None:
        self._limits(count, names)
        check.limits(feature_range=self.feature_range)

    def _limits(self, count: int, names: Sequence[str] | None) -> tuple[Floats, Floats]:
        if self.bounds is None:
            raise InvalidParameter("bounds", None, "to be given", _BOUNDS)
        known = hasattr(self, "n_features_in_")
        return ends(bounds_by_place(self.bounds, names, known=known), count, hint=_BOUNDS)


def _distinct(categories: Any) -> list[Any]:
    found = [one.item() if isinstance(one, np.generic) else one for one in categories]
    plain = all(isinstance(one, str | int | float) and one == one for one in found)  # noqa: PLR0124  # NaN is none
    if not found or not plain or len(set(found)) != len(found):
        condition = "to be texts or numbers, each once, for every column"
        raise InvalidParameter("categories", found, condition, _CATEGORIES)
    return found


def _columns(X: Any) -> list[list[Any]]:
    """Returns the values of each column as plain objects."""
    if is_table(X):
        frame = nw.from_native(X, eager_only=True)
        return [frame[name].to_list() for name in frame.columns]
    rows = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=None if hasattr(X, "dtype") else object)
    return [column.tolist() for column in rows.T]


def _among(column: list[Any], known: list[Any]) -> NDArray[np.int64]:
    places: dict[Any, int] = {each: place for place, each in enumerate(known)}
    found = (places.get(value, -1) if isinstance(value, Hashable) else -1 for value in column)
    return np.fromiter(found, dtype=np.int64, count=len(column))


def _names(model: Any, given: Any) -> list[str]:
    """Returns the names of the columns that were fitted, which names that are given must be."""
    own = getattr(model, "feature_names_in_", None)
    if own is None:
        own = [f"x{place}" for place in range(model.n_features_in_)] if given is None else given
    if given is not None and list(given) != list(own):
        raise InvalidParameter("input_features", list(given), "to be the names that were fitted", "Leave it out.")
    if len(own) != model.n_features_in_:
        raise InvalidParameter("input_features", list(own), f"to have a name for {model.n_features_in_} columns")
    return [str(name) for name in own]
