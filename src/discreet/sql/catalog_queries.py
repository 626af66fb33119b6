"""Queries of PostgreSQL's catalog, as clients send them, into the SQL of an engine in memory that holds such a catalog.

Everything passes an allow-list: a query reads listed tables of `pg_catalog` and `information_schema`, calls listed
functions and has listed parts, or it is refused. Values of parameters become literals of the tree, never text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token
from sqlglot.tokenizer_core import TokenType as Kind

from discreet.dataclass import dataclass
from discreet.errors import UnknownTable, UnsupportedQuery
from discreet.sql.postgres_names import alias_column, type_name

LONGEST = 40_000  # characters
MOST_TOKENS = 6_000
DEEPEST = 40  # brackets and CASE inside each other
LONGEST_RUN = 12  # words without a name or a value between them

SCHEMAS = {"pg_catalog": "pgc", "information_schema": "info"}
"""Schemas of PostgreSQL, and what they are called in the engine."""

PREFIX = "pgf_"
"""Begins the names of the engine's macros that stand for PostgreSQL's functions."""

_HINT = "The catalog describes tables and columns; see docs/postgresql_wire.md."
_MIXED = "Ask about declared tables and about the catalog in separate queries."


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogScope:
    """What catalog queries may use.

    Attributes:
        tables: of each schema of PostgreSQL.
        functions: for which the engine has macros.
        settings: what current_setting returns.
        user, database: who asks, and of what.
    """

    tables: Mapping[str, frozenset[str]]
    functions: frozenset[str]
    settings: Mapping[str, str]
    user: str
    database: str


def catalog_query(text: str, parameters: Sequence[object], scope: CatalogScope) -> str:
    """Returns a catalog query in the engine's words.

    Raises:
        UnsupportedQuery: if it is not one SELECT of listed parts.
        UnknownTable: if it reads a table that the catalog does not have.
    """
    tree = _parse_query(text)
    reader = _Reader(text, tuple(parameters), scope, _subquery_names(tree))
    if not isinstance(tree, exp.Query | exp.Values):
        reader.refuse("A catalog query is one SELECT.", tree)
    for select in list(tree.find_all(exp.Select)):
        select.set("expressions", [alias_column(each) for each in select.expressions])
    for node in reversed(list(tree.walk(bfs=True))):  # parts before what they are part of
        made = reader.rewrite_node(node)
        if made is not node:
            tree = made if node is tree else tree
            node.replace(made)
    for node in tree.walk():
        reader.admit(node)
    return str(tree.sql(dialect=DuckDB))


def _parse_query(text: str) -> exp.Expr:
    """Returns the tree of a text that is short and flat enough for the parser."""
    try:
        tokens = Postgres().tokenize(text) if len(text) <= LONGEST else None
    except SqlglotError:
        raise UnsupportedQuery("The text is not understood.", "Look for a quote that is not closed.") from None
    if tokens is None or len(tokens) > MOST_TOKENS or _deepest(tokens) > DEEPEST or _run(tokens) > LONGEST_RUN:
        raise UnsupportedQuery("The catalog query is too long or nested too deeply.", _HINT)
    try:
        trees = [tree for tree in Postgres().parse(text) if tree is not None]
    except SqlglotError as error:
        place = (error.errors or [{}])[0] if hasattr(error, "errors") else {}
        line, column = place.get("line"), place.get("col")
        position = (int(line), max(1, int(column))) if line and column is not None else None
        raise UnsupportedQuery("The catalog query is not understood.", _HINT, position, text=text) from None
    if len(trees) != 1:
        raise UnsupportedQuery("A catalog query is one SELECT.", _HINT)
    return trees[0]


_OPENS = {Kind.L_PAREN, Kind.L_BRACKET, Kind.CASE, Kind.L_BRACE}
_CLOSES = {Kind.R_PAREN, Kind.R_BRACKET, Kind.END, Kind.R_BRACE}
_OPERANDS = {
    Kind.VAR,
    Kind.IDENTIFIER,
    Kind.NUMBER,
    Kind.STRING,
    Kind.NULL,
    Kind.TRUE,
    Kind.FALSE,
    Kind.COMMA,
    Kind.STAR,
}


def _deepest(tokens: Sequence[Token]) -> int:
    depth = deepest = 0
    for token in tokens:
        depth += (token.token_type in _OPENS) - (token.token_type in _CLOSES)
        deepest = max(deepest, depth)
    return deepest


def _run(tokens: Sequence[Token]) -> int:
    run = longest = 0
    for token in tokens:
        run = 0 if token.token_type in _OPERANDS else run + 1
        longest = max(longest, run)
    return longest


def _subquery_names(tree: exp.Expr) -> frozenset[str]:
    """Returns names that the query gives to its own subqueries."""
    return frozenset(each.alias.lower() for each in tree.find_all(exp.CTE))


class _Reader:
    """Rewrites a tree from its leaves, and admits what came of it."""

    def __init__(self, text: str, parameters: tuple[object, ...], scope: CatalogScope, named: frozenset[str]) -> None:
        self._text, self._parameters, self._scope, self._named = text, parameters, scope, named

    def refuse(self, reason: str, node: exp.Expr) -> NoReturn:
        """Refuses the query, at the place of a node."""
        starts = [int(each.meta["start"]) for each in node.walk() if "start" in each.meta]
        position = None
        if starts:
            ahead = self._text[: min(starts)]
            position = (ahead.count("\n") + 1, len(ahead) - ahead.rfind("\n"))
        raise UnsupportedQuery(reason, _HINT, position, text=self._text)

    def rewrite_node(self, node: exp.Expr) -> exp.Expr:
        """Returns a node in the engine's words."""
        rewrite = _REWRITES.get(type(node))
        return node if rewrite is None else rewrite(self, node)

    def admit(self, node: exp.Expr) -> None:
        """Refuses every node whose kind is not listed."""
        if type(node) not in _ADMITTED or node.args.get("recursive"):
            self.refuse(f"{type(node).__name__} is not supported in a catalog query.", node)

    # ---------------------------------------------------------------------------------------------------- rewrites

    def table(self, node: exp.Table) -> exp.Expr:
        """Returns a table of the catalog under the engine's name; functions stand in FROM as they are."""
        if isinstance(node.this, exp.Func):
            node.set("db", None)
            return node
        schema, name = node.db.lower(), node.name.lower()
        if node.catalog and node.catalog != self._scope.database:
            raise UnknownTable(f"{node.catalog}.{node.db}.{node.name}", ())
        if not schema and name in self._named:
            return node
        found = next((own for own in (schema or "pg_catalog",) if name in self._scope.tables.get(own, ())), None)
        if found is None:
            self._unknown(node)
        if not node.alias and node.args.get("alias") is None:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(name)))
        node.set("this", exp.to_identifier(name))
        node.set("db", exp.to_identifier(SCHEMAS[found]))
        node.set("catalog", None)
        return node

    def _unknown(self, node: exp.Table) -> NoReturn:
        if not node.db or node.db.lower() in SCHEMAS:
            known = self._scope.tables[
                "information_schema" if node.db.lower() == "information_schema" else "pg_catalog"
            ]
            raise UnknownTable(f"{node.db}.{node.name}".lstrip("."), sorted(known))
        raise UnsupportedQuery(f"The catalog has no table {node.db}.{node.name}.", _MIXED)

    def column(self, node: exp.Column) -> exp.Expr:
        """Returns a column without the schema before its table."""
        node.set("db", None)
        node.set("catalog", None)
        return node

    def parameter(self, node: exp.Expr) -> exp.Expr:
        """Returns the value of $1 as a literal."""
        place = node.this.name if node.this is not None else ""
        if not place.isdecimal() or not 0 < int(place) <= len(self._parameters):
            self.refuse("A parameter is written as $1, $2 and so on, and has a value.", node)
        value = self._parameters[int(place) - 1]
        return exp.convert(value)

    def dot(self, node: exp.Dot) -> exp.Expr:
        """Returns a function without the schema before its name."""
        if isinstance(node.this, exp.Identifier) and node.this.name.lower() in SCHEMAS:
            own: exp.Expr = node.expression
            return own
        return node

    def call(self, node: exp.Anonymous) -> exp.Expr:
        """Returns a function of PostgreSQL as the engine's macro, or as a setting of the session."""
        name = node.name.lower()
        if name in _ENGINES:
            return exp.Anonymous(this=name, expressions=node.expressions)
        if name in _CALLS:
            return _CALLS[name](self, node)
        if name not in self._scope.functions:
            self.refuse(f"The function {name} is not in the list of catalog queries.", node)
        return exp.Anonymous(this=PREFIX + name, expressions=node.expressions)

    def json_object(self, node: exp.Anonymous) -> exp.Expr:
        """Objects tell of identities and collations, which no declared column has."""
        del node
        return exp.cast(exp.Null(), "VARCHAR", dialect=DuckDB)

    def all_of(self, node: exp.Anonymous) -> exp.Expr:
        """Rewrites <> ALL ('{a,b}') as a comparison with rows."""
        given = node.expressions[0] if len(node.expressions) == 1 else None
        given = given.this if isinstance(given, exp.Cast) else given
        if not isinstance(given, exp.Literal) or not re.fullmatch(r"\{[\w ,\"-]*\}", given.name):
            self.refuse("ALL compares with a list of words here.", node)
        words = exp.Array(expressions=[exp.convert(word) for word in given.name[1:-1].replace('"', "").split(",")])
        return exp.All(this=exp.Subquery(this=exp.Select(expressions=[exp.Explode(this=words)])))

    def setting(self, node: exp.Anonymous) -> exp.Expr:
        """Returns what current_setting says of a session."""
        given = node.expressions[0] if node.expressions else None
        given = given.this if isinstance(given, exp.Cast) else given
        name = given.name.lower() if isinstance(given, exp.Literal) else ""
        if name not in self._scope.settings and len(node.expressions) < 2:
            self.refuse("current_setting takes the name of a known setting.", node)
        return exp.convert(self._scope.settings.get(name))

    def cast(self, node: exp.Cast) -> exp.Expr:
        """Casts to regclass and its kin look names up; other types are the engine's."""
        kind, looked_up = type_name(node.to), _looked_up_kind(node.this)
        if looked_up is not None and kind in (None, "text", "name") and not _is_number(node.to):
            return exp.Anonymous(this=f"{PREFIX}{looked_up}_name", expressions=[node.this])
        if kind in _LOOKUPS:
            return self._looked_up(node, kind)
        if kind in _AS_TEXT:
            return exp.cast(node.this, "VARCHAR", dialect=DuckDB)
        if kind in ("oid", "xid"):
            return exp.cast(node.this, "UINTEGER", dialect=DuckDB)
        if kind is not None:
            self.refuse(f"The type {kind} is not in the list of catalog queries.", node)
        return node

    def _looked_up(self, node: exp.Cast, kind: str) -> exp.Expr:
        """Returns the oid of a name where one is written, else the name of an oid where it is shown."""
        inner = node.this
        if (isinstance(inner, exp.Literal) and inner.is_string) or isinstance(inner, exp.Null):
            return exp.Anonymous(this=f"{PREFIX}{kind}_oid", expressions=[inner])
        if isinstance(inner, exp.Anonymous) and inner.name == f"{PREFIX}pg_get_serial_sequence":
            return exp.Anonymous(this=f"{PREFIX}{kind}_oid", expressions=[inner])
        return exp.Anonymous(this=f"{PREFIX}{kind}_name", expressions=[inner])

    def operator(self, node: exp.Operator) -> exp.Expr:
        """Rewrites OPERATOR(pg_catalog.~) as the operator itself."""
        make = _OPERATORS.get(str(node.args["operator"]).replace(" ", "").lower().removeprefix("pg_catalog."))
        if make is None:
            self.refuse("The operator is not in the list of catalog queries.", node)
        return make(node.this, node.expression)

    def collate(self, node: exp.Collate) -> exp.Expr:
        """Leaves COLLATE out: text has one order."""
        own: exp.Expr = node.this
        return own

    def matches(self, node: exp.RegexpLike) -> exp.Expr:
        """Rewrites the operator ~, which finds a pattern anywhere."""
        return exp.Anonymous(this="regexp_matches", expressions=[node.this, node.expression])

    def imatches(self, node: exp.RegexpILike) -> exp.Expr:
        """Rewrites the operator ~*, which finds a pattern anywhere, in either case."""
        return exp.Anonymous(this="regexp_matches", expressions=[node.this, node.expression, exp.convert("i")])

    def literal(self, node: exp.Literal) -> exp.Expr:
        """Writes the text of an array of numbers as a list."""
        array = node.is_string and re.fullmatch(r"\{[\d,]*\}", node.name)
        return exp.convert(f"[{node.name[1:-1]}]") if array else node

    def database(self, node: exp.Expr) -> exp.Expr:
        """Returns the database that the client named."""
        del node
        return exp.convert(self._scope.database)

    def user(self, node: exp.Expr) -> exp.Expr:
        """Returns the name of the client's user."""
        del node
        return exp.convert(self._scope.user)

    def schema(self, node: exp.Expr) -> exp.Expr:
        """Returns the one schema of declared tables."""
        del node
        return exp.convert("public")

    def schemas(self, node: exp.Expr) -> exp.Expr:
        """Returns the search path, with the catalog's schema in it or without."""
        given = node.expressions[0] if isinstance(node, exp.Anonymous) and node.expressions else node.this
        flag = given if isinstance(given, exp.Boolean) else None
        names = ["pg_catalog", "public"] if flag is not None and flag.this else ["public"]
        return exp.Array(expressions=[exp.convert(each) for each in names])

    def version(self, node: exp.Expr) -> exp.Expr:
        """Returns what the service calls itself."""
        del node
        return exp.convert(self._scope.settings["version"])

    def text_of_bytes(self, node: exp.ByteString) -> exp.Expr:
        r"""Rewrites E'...' as a text whose escapes were read."""
        plain = str(node.this).replace("\\n", "\n").replace("\\t", "\t").replace("\\'", "'").replace("\\\\", "\\")
        return exp.convert(plain)

    def series(self, node: exp.Expr) -> exp.Expr:
        """Rewrites generate_series of few numbers."""
        start, end = node.args.get("start"), node.args.get("end")
        ends = (int(end.name) if isinstance(end, exp.Literal) and end.name.isdecimal() else 0) if end else 0
        if ends > 1000:
            self.refuse("generate_series is for a few numbers.", node)
        return exp.Anonymous(this="generate_series", expressions=[start, end])


def _looked_up_kind(node: exp.Expr) -> str | None:
    """Returns what kind of name was looked up, if a node does that."""
    name = node.name if isinstance(node, exp.Anonymous) else ""
    kind = name.removeprefix(PREFIX).removesuffix("_oid")
    return kind if name.endswith("_oid") and kind in _LOOKUPS else None


def _is_number(to: exp.Expr) -> bool:
    return isinstance(to, exp.DataType) and to.this in _NUMBERS


_ENGINES = {"generate_subscripts"}  # which the engine has under the same name
_LOOKUPS = {"regclass", "regtype", "regproc", "regprocedure", "regnamespace", "regrole"}
_AS_TEXT = {
    "name",
    "char",
    "cstring",
    "pg_node_tree",
    "information_schema.sql_identifier",
    "text",
    "refcursor",
    "json",
    "jsonb",
}
_NUMBERS = {exp.DataType.Type[name] for name in ("INT", "BIGINT", "SMALLINT", "UINT", "DECIMAL")}

_OPERATORS: dict[str, Callable[[exp.Expr, exp.Expr], exp.Expr]] = {
    "~": lambda one, other: exp.Anonymous(this="regexp_matches", expressions=[one, other]),
    "!~": lambda one, other: exp.Not(this=exp.Anonymous(this="regexp_matches", expressions=[one, other])),
    "~*": lambda one, other: exp.Anonymous(this="regexp_matches", expressions=[one, other, exp.convert("i")]),
    "=": lambda one, other: exp.EQ(this=one, expression=other),
    "<>": lambda one, other: exp.NEQ(this=one, expression=other),
    "~~": lambda one, other: exp.Like(this=one, expression=other),
}

_CALLS: dict[str, Callable[[_Reader, exp.Anonymous], exp.Expr]] = {
    "all": _Reader.all_of,
    "current_database": _Reader.database,
    "current_schema": _Reader.schema,
    "current_schemas": _Reader.schemas,
    "current_setting": _Reader.setting,
    "json_build_object": _Reader.json_object,
    "version": _Reader.version,
}

_REWRITES: dict[type, Callable[[_Reader, Any], exp.Expr]] = {
    exp.Table: _Reader.table,
    exp.Column: _Reader.column,
    exp.Parameter: _Reader.parameter,
    exp.Placeholder: _Reader.parameter,
    exp.Dot: _Reader.dot,
    exp.Anonymous: _Reader.call,
    exp.Cast: _Reader.cast,
    exp.TryCast: _Reader.cast,
    exp.Operator: _Reader.operator,
    exp.Collate: _Reader.collate,
    exp.RegexpLike: _Reader.matches,
    exp.RegexpILike: _Reader.imatches,
    exp.CurrentDatabase: _Reader.database,
    exp.CurrentCatalog: _Reader.database,
    exp.CurrentUser: _Reader.user,
    exp.SessionUser: _Reader.user,
    exp.CurrentSchema: _Reader.schema,
    exp.CurrentSchemas: _Reader.schemas,
    exp.CurrentVersion: _Reader.version,
    exp.ByteString: _Reader.text_of_bytes,
    exp.Literal: _Reader.literal,
    exp.GenerateSeries: _Reader.series,
    exp.ExplodingGenerateSeries: _Reader.series,
}

_STRUCTURE = """
    Alias Aliases And Add Any All Array ArrayAgg Between BitwiseAnd Boolean Bracket Case Cast Coalesce Column
    Concat Count CTE DataType Distinct DPipe Div Dot Is EQ Except Exists Explode Filter From GT GTE Group Having
    Identifier If ILike In Intersect Join Lateral Length Like Limit Literal LogicalAnd LogicalOr Lower LT LTE
    Max Min Mod Mul Neg NEQ Not Null Nullif Offset Or Order Ordered Paren ParameterizedAgg Replace RowNumber
    Select Slice Star StrPosition Sub Subquery Substring Sum Table TableAlias TableColumn Trim Tuple Union
    Unnest Upper Values Var Where Window WindowSpec With Anonymous Escape GroupConcat GenerateSeries SplitPart
    Left Right Round Abs Greatest Least TryCast Rank Avg ExplodingGenerateSeries DataTypeParam Struct
    StructExtract PropertyEQ
"""
_ADMITTED = frozenset(getattr(exp, name) for name in _STRUCTURE.split())
