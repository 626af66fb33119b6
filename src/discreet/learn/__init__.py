"""Learners with scikit-learn's interface whose fitted attributes are differentially private.

Bounds are public and stated; every sum that meets noise is an exact integer; `plan_event` tells the price before any
row is seen. Needs scikit-learn: ``pip install 'discreet[learn]'``.
"""

from discreet.lazy import extra

with extra("A learner"):
    from discreet.learn.base import Learner
    from discreet.learn.boosting import AdditiveClassifier
    from discreet.learn.choice import Choice, choose_model
    from discreet.learn.forest import RandomForestClassifier
    from discreet.learn.holdout import Holdout
    from discreet.learn.kmeans import KMeans
    from discreet.learn.linear_regression import LinearRegression, Ridge
    from discreet.learn.logistic import LogisticRegression
    from discreet.learn.naive_bayes import GaussianNB
    from discreet.learn.pca import PCA
    from discreet.learn.reuse import Reuse, reuse
    from discreet.learn.scaler import StandardScaler
    from discreet.learn.search import GridSearchCV
    from discreet.learn.store import from_json, load, save, to_json
    from discreet.learn.svc import LinearSVC
    from discreet.learn.trees import DecisionTreeClassifier

__all__ = [
    "PCA",
    "AdditiveClassifier",
    "Choice",
    "DecisionTreeClassifier",
    "GaussianNB",
    "GridSearchCV",
    "Holdout",
    "KMeans",
    "Learner",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "RandomForestClassifier",
    "Reuse",
    "Ridge",
    "StandardScaler",
    "choose_model",
    "from_json",
    "load",
    "reuse",
    "save",
    "to_json",
]
