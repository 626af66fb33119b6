"""The service: HTTP, a page and the PostgreSQL wire before one process that owns the ledger, and workers that read.

How a query over HTTP gets its answer, from top to bottom and back; each arrow down is a call, ``~~`` is a socket::

    client      POST /v1/ask
      |         http_listener          bounded connections, deadlines
      |         api.http_guard         sizes, Host, Origin, headers, one log line
      |         api.route_access       who asks: key, role, rate limits
      |         api.verb_routes        the body becomes Work
      v
    owner       owner.worker_executor  admission: permission, tables, appointment
      |         owner.job_queue        one of so many at once; callers take turns
      |         owner.worker_process   a worker from the pool, with the request
      ~~
    worker      worker.life            a curator of the declared tables, bound in memory and time
      |         worker.operations      arguments from JSON, then Curator.ask: plan, charge, read, noise
      |         worker.ledger_client   charge, store ...
      ~~
    owner       owner.ledger_gateway   fixes who asks, checks receipts, writes the ledger
      ~~
    worker      presentation.documents the answer as a document
      ~~
    owner       owner.worker_executor  holds the outcome until it may leave
      v
    client      api.http_responses     JSON, CSV or Arrow

The wire enters at `owner.worker_executor` from `wire.query_executor`, the page from `page.routes`.
``bench/following.py`` prints the files on each of these paths.
"""
