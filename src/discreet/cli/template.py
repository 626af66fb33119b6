"""The discreet.toml that `discreet init` writes: every key, explained, nothing switched on."""

from __future__ import annotations

TEMPLATE = """\
# What is protected, for whom, and how much may be spent. Everything here is public; none of it is read from the data.
# Remove the leading "#" of what you need, then run: discreet protect

ledger = "discreet.ledger"      # the book of accounts; made by `discreet protect`, readable by its owner only

# --- Tables -----------------------------------------------------------------------------------------------------------
# [tables.visits]
# source = "visits.csv"         # Parquet or CSV, relative to this file
# unit = "patient_id"           # the column that says who is protected; "" if each row is one person;
#                               # ["person", "day"] if several columns say it together; "order_id -> orders.id" if
#                               # the rows of another table with that key say it
# account = "patients"          # tables about the same people share one account; default: the table's own name
# max_groups = 3                # at most so many groups of an answer count one person ...
# max_rows = 1                  # ... with at most so many rows each
# identity = "visits of 2026"   # a name for the data: tables of one identity share an account; for a file that another
#                               # table was read from, it says that other people are in it now
# neighbours = "add_remove"     # or "replace"
# version = "2026-11"           # change it when the data change: stored answers are replayed within one version only
#
# [tables.visits.types]         # needed for CSV: int, float, bool, text, date, timestamp
# patient_id = "text"
# ward = "text"
# age = "int"
# charge = "float"
#
# [tables.visits.bounds]        # public limits of numbers and dates; without them, a question pays to find some
# age = [0, 120]
# charge = [0, 50000]
#
# [tables.visits.keys]          # public groups: all are shown, zeros included
# ward = ["A", "B", "C"]        # or "wards.ward": the values of a column of a public table

# --- Public tables: anybody may know them -----------------------------------------------------------------------------
# [public.wards]
# source = "wards.csv"
# types = { ward = "text" }     # needed for CSV

# --- Budgets: one for each account ------------------------------------------------------------------------------------
# [budgets.patients]
# epsilon = "2"                 # epsilon; epsilon and delta; rho; or rho and delta
# delta = "1e-6"                # needed for groups that are not declared as keys

# --- Analysts: without any, every name may ask ------------------------------------------------------------------------
# [analysts.ana.patients]       # ana may ask on the account "patients" ...
# epsilon = "0.5"               # ... and spend at most this of it; leave the amounts out for no cap of her own
# delta = "1e-7"

# --- Projects: questions asked with --project count against these caps, too -------------------------------------------
# [projects.asthma.patients]
# epsilon = "0.25"
# delta = "1e-7"
"""
