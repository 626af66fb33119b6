"""Learners with scikit-learn's interface whose fitted attributes are differentially private.

Bounds are public and stated; every sum that meets noise is an exact integer; `plan_event` tells the price before any
row is seen. Needs scikit-learn: ``pip install 'discreet[learn]'``.
"""

from discreet.learn.base import Learner
from discreet.learn.kmeans import KMeans
from discreet.learn.linear_regression import LinearRegression, Ridge
from discreet.learn.logistic import LogisticRegression
from discreet.learn.naive_bayes import GaussianNB
from discreet.learn.pca import PCA
from discreet.learn.scaler import StandardScaler
from discreet.learn.svc import LinearSVC

__all__ = [
    "PCA",
    "GaussianNB",
    "KMeans",
    "Learner",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "Ridge",
    "StandardScaler",
]
