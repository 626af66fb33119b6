"""Learners with scikit-learn's interface whose fitted attributes are differentially private.

Bounds are public and stated; every sum that meets noise is an exact integer; `plan_event` returns the price before any
row is seen. Needs scikit-learn: ``pip install '.[learn]'``.
"""

from discreet.lazy import extra

with extra("A learner"):
    from discreet.learn.clusters.kmeans import KMeans
    from discreet.learn.learner import Learner
    from discreet.learn.linear.classifiers import LinearSVC, LogisticRegression
    from discreet.learn.linear.naive_bayes import GaussianNB
    from discreet.learn.linear.regression import LinearRegression, Ridge
    from discreet.learn.linear.transformers import PCA, StandardScaler
    from discreet.learn.persistence.store import from_json, load, save, to_json
    from discreet.learn.pipelines.pipeline import Pipeline
    from discreet.learn.pipelines.public_encoders import PublicOneHotEncoder, PublicOrdinalEncoder, PublicScaler
    from discreet.learn.privacy_warnings import PrivacyWarning
    from discreet.learn.selection.auto_classifier import AutoClassifier
    from discreet.learn.selection.choice import Choice, choose_model
    from discreet.learn.selection.holdout import Holdout, Reuse, reuse
    from discreet.learn.selection.search import GridSearchCV
    from discreet.learn.trees.boosting import AdditiveClassifier
    from discreet.learn.trees.decision_trees import DecisionTreeClassifier, RandomForestClassifier
    from discreet.learn.trees.random_splits import ExtraTreesClassifier

__all__ = [
    "PCA",
    "AdditiveClassifier",
    "AutoClassifier",
    "Choice",
    "DecisionTreeClassifier",
    "ExtraTreesClassifier",
    "GaussianNB",
]
__all__ += [
    "GridSearchCV",
    "Holdout",
    "KMeans",
    "Learner",
    "LinearRegression",
    "LinearSVC",
    "LogisticRegression",
    "RandomForestClassifier",
]
__all__ += ["Pipeline", "PrivacyWarning", "PublicOneHotEncoder", "PublicOrdinalEncoder", "PublicScaler"]
__all__ += ["Reuse", "Ridge", "StandardScaler"]
__all__ += ["choose_model", "from_json", "load", "reuse", "save", "to_json"]
