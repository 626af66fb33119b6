"""PostgreSQL's functions that clients call in catalog queries, as macros of the engine.

Sizes are never shown: they would count rows. What does not exist here (indexes, defaults, triggers) is NULL.
"""

from __future__ import annotations

from discreet.sql.catalog_queries import PREFIX

TYPE_NAMES = {
    16: "boolean",
    18: '"char"',
    20: "bigint",
    21: "smallint",
    23: "integer",
    700: "real",
    701: "double precision",
    1042: "character",
    1043: "character varying",
    1083: "time without time zone",
    1114: "timestamp without time zone",
    1184: "timestamp with time zone",
    1266: "time with time zone",
}
"""The names that SQL gives to types; all others have their name in `pg_type`."""

_NAMES = " ".join(f"WHEN {oid} THEN '{name}'" for oid, name in TYPE_NAMES.items())
_OIDS = " ".join(f"WHEN '{name}' THEN {oid}" for oid, name in TYPE_NAMES.items())
_FORMAT = f"""CASE WHEN a IS NULL THEN NULL ELSE CASE a {_NAMES} ELSE coalesce(
    (SELECT CASE WHEN left(z_t.typname, 1) = '_' THEN CASE z_t.typelem {_NAMES} ELSE z_t.typname[2:] END || '[]'
     ELSE z_t.typname END FROM pgc.pg_type AS z_t WHERE z_t.oid = a), '???') END END"""
# Tables inside have names that no client uses: a column of a client's query could be taken for theirs.
_BARE = "replace(regexp_replace(a, '^.*[.]', ''), '\"', '')"  # a name without its schema and its quotes
_CLASS_OID = f"(SELECT min(z_c.oid) FROM pgc.pg_class AS z_c WHERE z_c.relname = {_BARE})"
_CLASS_NAME = "(SELECT z_c.relname FROM pgc.pg_class AS z_c WHERE z_c.oid = TRY_CAST(a AS UINTEGER))"
_CLASS_NAME = f"coalesce({_CLASS_NAME}, a::VARCHAR)"
_TYPE_OID = f"(SELECT min(z_t.oid) FROM pgc.pg_type AS z_t WHERE z_t.typname = {_BARE})"
_TYPE_OID = f"coalesce(CASE a {_OIDS} END, {_TYPE_OID})"
_DESCRIBED = "(SELECT z_d.description FROM pgc.pg_description AS z_d WHERE z_d.objoid = a AND z_d.objsubid = {})"

_VISIBLE = "pg_type_is_visible pg_function_is_visible pg_collation_is_visible pg_operator_is_visible"
_VISIBLE += " pg_opclass_is_visible pg_conversion_is_visible pg_statistics_obj_is_visible pg_ts_config_is_visible"
_UNKNOWN_TEXTS = {
    (0,): "inet_server_addr inet_client_addr",
    (1,): "pg_get_partkeydef pg_get_partition_constraintdef pg_get_function_result pg_get_function_arguments "
    "pg_get_function_identity_arguments pg_get_functiondef pg_get_statisticsobjdef_columns pg_tablespace_location "
    "pg_size_pretty",
    (2,): "pg_get_serial_sequence shobj_description",
    (1, 2): "pg_get_constraintdef pg_get_viewdef pg_get_ruledef pg_get_triggerdef",
    (1, 3): "pg_get_indexdef",
    (2, 3): "pg_get_expr",
}
"""Functions whose texts are NULL, by the numbers of parameters that they take."""

_SIZES = "pg_table_size pg_relation_size pg_total_relation_size pg_database_size pg_indexes_size"
_PRIVILEGES = "has_table_privilege has_schema_privilege has_database_privilege has_column_privilege pg_has_role"
_PRIVILEGES += " has_any_column_privilege has_sequence_privilege has_function_privilege"

_SINGLE = {
    "format_type": ("a, b", _FORMAT),
    "pg_table_is_visible": ("a", "(a < 13000 OR a >= 16384)"),
    "pg_get_userbyid": ("a", "(SELECT z_r.rolname FROM pgc.pg_roles AS z_r WHERE z_r.oid = a)"),
    "pg_encoding_to_char": ("a", "CASE a WHEN 6 THEN 'UTF8' ELSE '' END"),
    "pg_char_to_encoding": ("a", "CASE upper(a) WHEN 'UTF8' THEN 6 ELSE -1 END"),
    **dict.fromkeys(("pg_relation_is_publishable", "pg_is_other_temp_schema", "row_security_active"), ("a", "false")),
    "pg_is_in_recovery": ("", "false"),
    "pg_my_temp_schema": ("", "0::UINTEGER"),
    "pg_backend_pid": ("", "0"),
    "quote_ident": ("a", "CASE WHEN regexp_full_match(a, '[a-z_][a-z0-9_]*') THEN a ELSE '\"' || a || '\"' END"),
    **dict.fromkeys(("array_upper", "array_length"), ("a, b", "nullif(len(a), 0)::INTEGER")),
    "array_lower": ("a, b", "CASE WHEN len(a) > 0 THEN 1 END"),
    "array_position": ("a, b", "list_position(a, b)"),
    "array_remove": ("a, b", "list_filter(a, lambda e: e <> b)"),
    "cardinality": ("a", "len(a)::INTEGER"),
    "_pg_expandarray": ("a", "struct_pack(x := unnest(a), n := generate_subscripts(a, 1))"),
    "col_description": ("a, b", _DESCRIBED.format("b")),
    **dict.fromkeys(("regclass_oid", "to_regclass"), ("a", _CLASS_OID)),
    "regclass_name": ("a", _CLASS_NAME),
    **dict.fromkeys(("regtype_oid", "to_regtype"), ("a", _TYPE_OID)),
    "regtype_name": ("a", f"({_FORMAT})"),
    **dict.fromkeys(("regproc_oid", "regprocedure_oid"), ("a", _BARE)),
    **dict.fromkeys(("regproc_name", "regprocedure_name"), ("a", "a::VARCHAR")),
    "regnamespace_oid": ("a", "(SELECT z_n.oid FROM pgc.pg_namespace AS z_n WHERE z_n.nspname = a)"),
    "regnamespace_name": ("a", "(SELECT z_n.nspname FROM pgc.pg_namespace AS z_n WHERE z_n.oid = a)"),
    "regrole_oid": ("a", "(SELECT z_r.oid FROM pgc.pg_roles AS z_r WHERE z_r.rolname = a)"),
    "regrole_name": ("a", "(SELECT z_r.rolname FROM pgc.pg_roles AS z_r WHERE z_r.oid = a)"),
}
_LETTERS = "abc"


def _parameters(count: int) -> str:
    return ", ".join(_LETTERS[:count])


MACROS: dict[str, list[tuple[str, str]]] = {
    **{name: [("a", "(a IS NOT NULL)")] for name in _VISIBLE.split()},
    **{
        name: [(_parameters(n), "NULL::VARCHAR") for n in counts]
        for counts, names in _UNKNOWN_TEXTS.items()
        for name in names.split()
    },
    **{name: [("a", "NULL::BIGINT"), ("a, b", "NULL::BIGINT")] for name in _SIZES.split()},
    **{name: [(_parameters(n), "true") for n in (1, 2, 3)] for name in _PRIVILEGES.split()},
    **{name: [form] for name, form in _SINGLE.items()},
    "array_to_string": [("a, b", "array_to_string(a, b)"), ("a, b, c", "array_to_string(a, b)")],
    "obj_description": [(parameters, _DESCRIBED.format("0")) for parameters in ("a, b", "a")],
}
"""The forms of each function: parameters, and the expression that they expand to."""

TABLE_MACROS = {"pg_get_keywords": "SELECT word, catcode, catdesc FROM pgc.pg_keywords"}
"""Functions that are called in FROM."""

FUNCTIONS = frozenset({*MACROS, *TABLE_MACROS}) - {name for name in MACROS if name.startswith("reg")}
"""The functions that a query may call; names of regclass and the like are looked up by casts."""


def statements() -> list[str]:
    """Returns the statements that create all macros."""
    made = []
    for name, forms in MACROS.items():
        written = ", ".join(f"({parameters}) AS {body}" for parameters, body in forms)
        made.append(f"CREATE MACRO {PREFIX}{name}{written}")
    return [*made, *(f"CREATE MACRO {PREFIX}{name}() AS TABLE {body}" for name, body in TABLE_MACROS.items())]
