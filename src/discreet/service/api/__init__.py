"""The HTTP API under /v1: routes, what each needs, and what leaves: documents, CSV, Arrow, events.

`application` puts it together. A request passes `http_guard` (its size, its Host, one line of log), `route_access` (the
key, the permission, the limits, before the body is read), `request_bodies` (the body, numbers as written), and one of
the routes; all leaves by `http_responses`.
"""
