"""Who calls: people, keys, sessions, sign-in links, SCRAM for the wire, limits, and sign-in with a provider.

`Identities` proves and manages; `RateLimits` counts; `scram.Exchange` is one sign-in on the wire.
"""

from discreet.service.identity.access_keys import AccessKey
from discreet.service.identity.browser_sessions import SessionLimits
from discreet.service.identity.identities import Identities
from discreet.service.identity.people import ActionRecorder, Person
from discreet.service.identity.rate_limits import RateLimits

__all__ = ["AccessKey", "ActionRecorder", "Identities", "Person", "RateLimits", "SessionLimits"]
