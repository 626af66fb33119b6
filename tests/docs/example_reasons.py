"""Public names whose docstrings have no example of their own and that no example elsewhere shows, and why.

The list may only shrink: a name that gets an example, or is shown by one, has to leave it.
"""

REASONS = {
    "is raised, and its message is tested where it is raised": """
        discreet.learn.PrivacyWarning
    """,
    "is what several classes have in common, and they have examples": """
        discreet.attacks.Attack discreet.attacks.subset_counts.Answerer discreet.audit.mechanisms.goodness_of_fit.Law
        discreet.deep.ClipRule
        discreet.local.MeanOracle discreet.mechanisms.Criterion discreet.mechanisms.Mechanism
        discreet.mechanisms.Norm discreet.statistics.Score
    """,
    "is what something returns, and is shown there as what it prints": """
        discreet.attacks.Coarsened discreet.attacks.Comparison discreet.attacks.Curves discreet.attacks.Disclosure
        discreet.attacks.KnownItems discreet.attacks.Membership discreet.attacks.Presence discreet.attacks.Robustness
        discreet.attacks.Tracing discreet.attacks.Trial discreet.audit.Audited discreet.audit.QueryAudit
        discreet.audit.Violation discreet.curator.Program discreet.curator.Released
        discreet.curator.book_report.report_page.BookReport discreet.learn.Reuse
        discreet.synthetic.Model discreet.workload.ReleasedAnswers
        discreet.workload.ReleasedTables
    """,
    "takes long, or data that an example cannot hold; `discreet attack` and tests run it": """
        discreet.attacks.backdoor_under_privacy discreet.attacks.genome discreet.attacks.labels_under_lies
        discreet.attacks.membership discreet.attacks.reconstruction_by_guarantee
        discreet.attacks.reconstruction_by_noise discreet.attacks.regression_under_outliers
        discreet.attacks.scoreboard_by_items discreet.attacks.smoothed discreet.attacks.trace
        discreet.attacks.triggered
    """,
    "works on files or books, which tests make": """
        discreet.audit.protected discreet.check_file discreet.curator.book_report.report_page.verified
        discreet.curator.run discreet.learn.load
    """,
    "has a sibling on the same page whose example shows how it is used": """
        discreet.Limits discreet.attacks.subset_counts.Bounded
        discreet.attacks.subset_counts.Exact discreet.attacks.subset_counts.FromCurator
        discreet.attacks.subset_counts.GaussianPrivate discreet.attacks.subset_counts.Private
        discreet.attacks.subset_counts.Rounded discreet.attacks.subset_counts.Suppressed
        discreet.audit.mechanisms.goodness_of_fit.Bernoulli discreet.audit.mechanisms.goodness_of_fit.Categorical
        discreet.audit.mechanisms.goodness_of_fit.Geometric discreet.audit.mechanisms.goodness_of_fit.Uniform
        discreet.audit.mechanisms.goodness_of_fit.share_p_value discreet.count_distinct discreet.count_units
        discreet.maximum discreet.minimum discreet.mode discreet.statistics.Logistic
        discreet.stddev
    """,
}
"""Names by reason."""
