"""Public names whose docstrings have no example of their own and that no example elsewhere shows, and why.

The list may only shrink: a name that gets an example, or is shown by one, has to leave it.
"""

REASONS = {
    "is raised, and its message is tested where it is raised": """
        discreet.errors.AccountLocked discreet.errors.AnchorMismatch discreet.errors.AnchorNotKept
        discreet.errors.InsufficientBudget discreet.errors.InternalError discreet.errors.InvalidValue
        discreet.errors.KeyConflict discreet.errors.LedgerError discreet.errors.LedgerMissing
        discreet.errors.LedgerTampered discreet.errors.NotAuthenticated discreet.errors.NotPermitted
        discreet.errors.RandomnessUnavailable discreet.errors.ServiceError discreet.errors.ServiceUnavailable
        discreet.errors.TooManyRequests discreet.errors.UnknownEntry discreet.errors.UnknownJob
        discreet.errors.UnsupportedEvent discreet.exact.Undecided
        discreet.remote.dbapi.DataError discreet.remote.dbapi.DatabaseError discreet.remote.dbapi.Error
        discreet.remote.dbapi.IntegrityError discreet.remote.dbapi.InterfaceError discreet.remote.dbapi.InternalError
        discreet.remote.dbapi.NotSupportedError discreet.remote.dbapi.OperationalError
        discreet.remote.dbapi.ProgrammingError discreet.remote.dbapi.Warning
    """,
    "needs a service that runs; tests/remote runs the programs of docs/http_api.md": """
        discreet.remote.dbapi.Connection discreet.remote.dbapi.Cursor discreet.remote.dbapi.DateFromTicks
        discreet.remote.dbapi.TimeFromTicks discreet.remote.dbapi.TimestampFromTicks
    """,
    "is a constant": """
        discreet.accounting.ORDERS discreet.ledger.FAILURE_CEILING discreet.ledger.FAILURE_CREDITS
        discreet.ledger.OWNER discreet.privacy.events.KINDS
    """,
    "is what several classes have in common, and they have examples": """
        discreet.engines.BySource discreet.engines.Engine discreet.engines.by_source
        discreet.noise.Bits
    """,
    "is what something returns, and is shown there as what it prints": """
        discreet.ledger.Restored
        discreet.ledger.Share
    """,
    "draws at random: a page shows what is made of it, and tests compare its law": """
        discreet.noise.LazyUniform discreet.noise.SecureBits discreet.noise.choose_exponential
        discreet.noise.experiment.shuffled discreet.noise.experiment.uniforms discreet.noise.exponential_deviate
        discreet.noise.normal_deviate discreet.noise.rounded discreet.noise.rounded_gaussian
        discreet.noise.rounded_gaussians discreet.noise.source_of discreet.noise.system_bits
    """,
    "works on files or books, which tests make": """
        discreet.ledger.AnchoredBook
        discreet.ledger.is_there discreet.ledger.require_there discreet.ledger.restore
        discreet.ledger.restore_anchored
    """,
    "has a sibling on the same page whose example shows how it is used": """
        discreet.accounting.methods
        discreet.exact.exact_value discreet.exact.float_below discreet.exact.root_below
        discreet.exact.settle
    """,
}
"""Names by reason."""
