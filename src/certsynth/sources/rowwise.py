"""Accept only row-wise DuckDB queries: each row of the result depends on one row of one table, and on nothing else.

Then tables that differ in one row have results that differ in at most one row, so noise that hides a row of the result
hides a row of the table. Whatever is not on an allow-list is refused. The syntax tree shows clauses, expressions and
functions; DuckDB's plan shows where rows come from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from certsynth.domain.persons import Persons
from certsynth.errors import InputError
from certsynth.sources.grouped import (
    is_grouped,
    refuse_collations,
    refuse_inexact_types,
    take_apart,
)

Ask = Callable[[str], list[tuple[Any, ...]]]
"""Runs SQL on the connection of a query: catalogue lookups and plans only, never rows."""


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = word_set(
    """
    + - * / // % ** ^ & | ~ << >> = != < > <= >= ! @ || ^@ ~~ !~~ ~~* !~~* ~~~ ->>
    abs acos acosh add array_contains array_extract array_has array_length ascii asin asinh atan atan2 atanh
    bit_count bit_length cbrt ceil ceiling century char_length character_length chr concat concat_ws contains cos cosh
    cot damerau_levenshtein date_add date_diff date_part date_sub date_trunc datediff datepart datesub datetrunc day
    dayname dayofmonth dayofweek dayofyear days_in_month decade degrees divide element_at ends_with enum_code epoch
    epoch_ms epoch_ns epoch_us era even exp factorial fdiv floor fmod format gamma gcd greatest greatest_common_divisor
    hamming hex hour if ilike_escape instr isfinite isinf isnan isodow isoyear jaccard jaro_similarity
    jaro_winkler_similarity json_array_length json_extract json_extract_path json_extract_path_text json_extract_string
    json_type json_valid json_value julian last_day lcase lcm least least_common_multiple left len length levenshtein
    lgamma like_escape list_avg list_concat list_contains list_count list_element list_extract list_has list_max
    list_min list_sum list_value ln log log10 log2 lower lpad ltrim make_date make_time make_timestamp
    make_timestamp_ms make_timestamp_ns map map_contains map_extract map_extract_value md5 microsecond millennium
    millisecond minute mod month monthname multiply nanosecond nfc_normalize not_ilike_escape not_like_escape nullif
    octet_length ord pi position pow power prefix printf quarter radians regexp_escape regexp_extract
    regexp_full_match regexp_matches regexp_replace repeat replace reverse right round round_even row rpad rtrim second
    sha1 sha256 sign sin sinh split_part sqrt starts_with str_split strftime string_split strip_accents strlen strpos
    strptime struct_extract struct_extract_at struct_pack substr substring subtract suffix tan tanh time_bucket
    timezone to_base to_centuries to_days to_decades to_hours to_microseconds to_millennia to_milliseconds to_minutes
    to_months to_quarters to_seconds to_timestamp to_weeks to_years translate trim trunc try_strptime typeof ucase
    unicode upper week weekday weekofyear xor year yearweek
    """
)
"""Functions of the values of one row. DuckDB marks more functions as consistent, but some depend on more than values:
`stats` on extremes of the whole column, `vector_type` on how a batch is stored, and `age` on the current date."""

_EXPRESSIONS = word_set(
    "BETWEEN CASE CAST COLLATE COLUMN_REF COMPARISON CONJUNCTION CONSTANT FUNCTION OPERATOR PARAMETER "
    "POSITIONAL_REFERENCE STAR TYPE"
)
_PARTS = word_set("SELECT_NODE BASE_TABLE SUBQUERY TABLE_FUNCTION EXPRESSION_LIST EMPTY ORDER_MODIFIER")
_ORDERS = word_set("ORDER_DEFAULT ASCENDING DESCENDING")
_POSITION_COLUMNS = frozenset({"rowid", "file_row_number", "file_index"})
"""Pseudo-columns with the position of a row, which depends on the rows before it."""

_CLOCKS = frozenset({"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp"})
_PARQUET_READERS = frozenset({"read_parquet", "parquet_scan"})
_PARQUET_OPTIONS = {
    "binary_as_string": {"true", "false"},
    "hive_partitioning": {"true", "false"},
    "hive_types_autocast": {"false"},
    # DuckDB writes these out even at their defaults.
    "file_row_number": {"false"},
    "filename": {"true", "false"},
    "union_by_name": {"false"},
}
_ROWLESS_FUNCTIONS = frozenset({"range", "generate_series"})
_STEPS = word_set("PROJECTION FILTER ORDER_BY CTE CTE_SCAN EXPRESSION_GET")
_LEAVES = word_set("SEQ_SCAN PARQUET_SCAN READ_PARQUET RANGE GENERATE_SERIES DUMMY_SCAN COLUMN_DATA_SCAN EMPTY_RESULT")
_REMOTE = ("POSTGRES_", "MYSQL_", "SQLITE_")
_ARROW = "PYTHON_ARROW_SCAN"
UNNAMED_PREFIX = "__duckdb_source_"
"""Prefix of the names that DuckDB gives to sources without one: a frame, or rows held in memory."""

_MAX_VIEW_DEPTH = 20

_MANY = "one private row could change many rows of the result"
_ONE_ROW_EACH = "Make a table or Parquet file in which one row is one person, and select from that."
_DECLARE_PERSONS = (
    f"{_ONE_ROW_EACH} If it groups by the column that names persons, say so in the schema: [table] person, with "
    "rows_per_person = 1."
)
_OUTERMOST = "Group by the column that names persons, in the outermost SELECT."
_STATED = "write a Parquet file with a stated type for each column, and select from that"

_CLAUSES = {
    "RECURSIVE_CTE_NODE": "WITH RECURSIVE",
    "SET_OPERATION_NODE": "UNION, EXCEPT or INTERSECT",
    "LIMIT_MODIFIER": "LIMIT or OFFSET",
    "LIMIT_PERCENT_MODIFIER": "LIMIT",
    "DISTINCT_MODIFIER": "DISTINCT",
    "JOIN": "a join",
    "PIVOT": "PIVOT",
    "SHOW_REF": "DESCRIBE or SUMMARIZE",
    "WINDOW": "a window function",
    "SUBQUERY": "a subquery among its expressions",
    "LAMBDA": "a lambda or the operator ->",
}


@dataclass(slots=True)
class _Seen:
    """The tables and functions found in the syntax tree of a query."""

    where: str
    ask: Ask
    tables: list[tuple[str, ...]] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    ctes: set[str] = field(default_factory=set)
    plain: bool = False
    grouped: bool = False
    grouping_remedy: str = _DECLARE_PERSONS

    def refuse(self, found: str, why: str = _MANY, remedy: str = _ONE_ROW_EACH) -> InputError:
        return InputError(f"{self.where}: it has {found}, and {why}. {remedy}")


def refuse_other_queries(text: str, parse: Ask, ask: Ask, where: str, persons: Persons | None = None) -> _Seen:
    """Refuse a query that is not row-wise, judged by its text and the views and macros of its connection.

    If a column names `persons`, the outermost SELECT may group by it.
    """
    remedy = _DECLARE_PERSONS if persons is None else _OUTERMOST
    seen = _Seen(where, ask, grouping_remedy=remedy)
    _read(text, parse, seen, persons)
    depth = 0
    views = _views(ask)
    pending = list(seen.tables)
    while pending:
        inner = _Seen(where, ask, grouping_remedy=remedy)
        for table in pending:
            for found in views.get(table[-1].lower(), ()):
                _read_view(found, parse, inner)
        depth += 1
        if depth > _MAX_VIEW_DEPTH:
            raise InputError(f"{where}: its views are nested too deeply. {_ONE_ROW_EACH}")
        seen.functions |= inner.functions
        seen.patterns += inner.patterns
        seen.tables += inner.tables
        pending = inner.tables
    if own := sorted(seen.functions & _macros(ask)):
        raise InputError(f"{where}: {own[0]} is a user-defined macro. Write its definition into the query.")
    for pattern in seen.patterns:
        _refuse_guessed_folders(pattern, ask, where)
    return seen


def refuse_other_sources(plan: str, where: str, *, logical: bool, grouped: bool = False) -> bool:
    """Refuse a plan that reads anything but tables with declared types; return whether it reads an Arrow frame.

    A logical plan shows the query's own steps, with one aggregation if it is `grouped`. A physical plan is optimised,
    so only its leaves are checked.
    """
    arrow, aggregations = False, 0
    if grouped:
        refuse_collations(plan, where)
    for name, is_leaf in _nodes(json.loads(plan)):
        if grouped and name == "AGGREGATE" and aggregations == 0:
            aggregations += 1
            continue
        arrow |= name == _ARROW
        if name == "PANDAS_SCAN":
            remedy = "Give the frame itself, or the relation of a pyarrow table."
            raise InputError(f"{where}: DuckDB guesses types of pandas' objects from rows. {remedy}")
        if is_leaf and name.startswith("READ_") and name not in _LEAVES:
            raise InputError(f"{where}: it reads files whose types DuckDB guesses from rows. {_capital(_STATED)}.")
        known = name in _LEAVES or name in _STEPS or name == _ARROW or name.startswith(_REMOTE)
        if not known and (is_leaf or logical):
            raise InputError(f"{where}: {name} does not work row by row: {_MANY}. {_ONE_ROW_EACH}")
    return arrow


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _nodes(tree: Any) -> Iterator[tuple[str, bool]]:
    for node in tree:
        yield str(node["name"]).strip(), not node["children"]
        yield from _nodes(node["children"])


def _read(text: str, parse: Ask, seen: _Seen, persons: Persons | None = None) -> None:
    """Check the syntax tree of a query and collect what it reads. It may group by the column that names `persons`."""
    parsed = parse(text)
    tree: Any = json.loads(parsed[0][0]) if parsed else {"error": True}
    if tree.get("error", True) or len(tree["statements"]) != 1:
        raise InputError(f"{seen.where}: not a single SELECT that can be analysed. Select rows, and nothing else.")
    node = tree["statements"][0]["node"]
    seen.plain = _is_plain(node)
    seen.ctes |= set(_names_of_ctes(node))
    if persons is None or not is_grouped(node):
        _walk(node, seen)
    else:
        grouping = take_apart(node, persons, _aggregates(seen.ask), seen.refuse)
        _walk([grouping.rows, grouping.result], seen)
        refuse_inexact_types(grouping, seen.ask, seen.refuse)
        seen.functions |= grouping.names
        seen.grouped = True


def _read_view(sql: str, parse: Ask, seen: _Seen) -> None:
    """Read the SELECT of a view: the text after the first AS that parses, since names may contain that word."""
    for found in re.finditer(r"\bAS\b", sql, re.IGNORECASE):
        text = sql[found.end() :].strip().rstrip(";")
        if not json.loads(parse(text)[0][0]).get("error", True):
            return _read(text, parse, seen)
    raise InputError(f"{seen.where}: a view cannot be analysed. Write its SELECT into the query.")


def _views(ask: Ask) -> dict[str, list[str]]:
    """The texts of all views by name: several databases may have one of the same name."""
    found: dict[str, list[str]] = {}
    for name, sql in ask("SELECT view_name, sql FROM duckdb_views() WHERE NOT internal"):
        found.setdefault(str(name).lower(), []).append(str(sql))
    return found


def _macros(ask: Ask) -> set[str]:
    found = ask("SELECT DISTINCT function_name FROM duckdb_functions() WHERE NOT internal")
    return {str(name).lower() for (name,) in found}


def _aggregates(ask: Ask) -> set[str]:
    found = ask("SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type = 'aggregate'")
    return {str(name).lower() for (name,) in found} | {"count_star"}


def _is_plain(node: dict[str, Any]) -> bool:
    """Whether a query is just SELECT * FROM a table."""
    stars = [each.get("class") == "STAR" and not each["replace_list"] for each in node.get("select_list", [])]
    return stars == [True] and not node["where_clause"] and not node["modifiers"]


def _names_of_ctes(tree: Any) -> Iterator[str]:
    if isinstance(tree, dict):
        for each in (tree.get("cte_map") or {}).get("map", []):
            yield str(each["key"]).lower()
    for inner in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _names_of_ctes(inner)


def _walk(tree: Any, seen: _Seen) -> None:
    """Check every node of a tree. The kind of a node is its class or its type."""
    if isinstance(tree, list):
        for each in tree:
            _walk(each, seen)
    if not isinstance(tree, dict):
        return
    kind = str(tree.get("class") or tree.get("type") or "")
    if "class" in tree:
        if kind not in _EXPRESSIONS:
            raise seen.refuse(_CLAUSES.get(kind, f"an expression of the kind {kind}"))
        _check_expression(kind, tree, seen)
    elif "type" in tree:
        if kind not in _PARTS | _ORDERS:
            raise seen.refuse(_CLAUSES.get(kind, f"a part of the kind {kind}"))
        _check_part(kind, tree, seen)
        if kind == "TABLE_FUNCTION":
            return  # its arguments are checked constants
    for each in tree.values():
        _walk(each, seen)


def _check_part(kind: str, part: dict[str, Any], seen: _Seen) -> None:
    if part.get("sample"):
        raise seen.refuse("a sample", "its rows may depend on each other")
    if kind == "SELECT_NODE":
        if part["group_expressions"] or part["group_sets"] or part["having"]:
            raise seen.refuse("GROUP BY or HAVING", remedy=seen.grouping_remedy)
        if part["aggregate_handling"] != "STANDARD_HANDLING":
            raise seen.refuse("GROUP BY ALL", remedy=seen.grouping_remedy)
        if part["qualify"]:
            raise seen.refuse("QUALIFY")
    elif kind == "BASE_TABLE":
        path = tuple(str(name) for name in part["qualified_name"]["path"])
        if part.get("at_clause"):
            raise seen.refuse("AT", "a past version of a table is another table", "Select from the current table.")
        if len(path) == 1 and path[0].lower() in seen.ctes:
            seen.tables.append(path)  # or a table or view of that name: the plan shows which
        elif len(path) == 1 and path[0].lower().endswith(".parquet"):
            seen.patterns.append(path[0])
        elif len(path) == 1 and _is_file(path[0]):
            raise _guessed(path[0], seen)
        else:
            seen.tables.append(path)
    elif kind == "TABLE_FUNCTION":
        _check_table_function(part, seen)


def _is_file(name: str) -> bool:
    return bool(re.search(r"\.[A-Za-z]{2,7}(\.(gz|zst|bz2|xz))?$|[/\\*?\[]|://", name))


def _guessed(name: str, seen: _Seen) -> InputError:
    """The error for a file whose types DuckDB would guess from rows.

    `read_csv` is refused even with all types stated: with `parallel = false` it silently drops the rest of a file after
    an unclosed quote (DuckDB 2.0), and certsynth reads CSV itself.
    """
    if re.search(r"\.(duckdb|db|ddb)$", name.lower()):
        remedy = "Attach the database, as with --attach town=town.duckdb, and select from a table of it"
        return InputError(f"{seen.where}: {name!r} is not a table. {remedy}.")
    csv = re.search(r"\.[ct]sv(\.gz)?$", name.lower())
    whole = f"Give {name} itself in place of the query" + (", without --sql" if "SQL" in seen.where else "")
    remedy = f"{whole}." if csv and seen.plain else f"{whole}, or {_STATED}." if csv else f"{_capital(_STATED)}."
    why = "so one row could change how all others are read"
    return InputError(f"{seen.where}: DuckDB guesses the types of {name!r} from its rows, {why}. {remedy}")


def _check_table_function(part: dict[str, Any], seen: _Seen) -> None:
    called = part["function"]
    name, arguments = str(called["function_name"]).lower(), list(_arguments(called))
    if part.get("with_ordinality", "WITHOUT_ORDINALITY") != "WITHOUT_ORDINALITY":
        raise seen.refuse("WITH ORDINALITY")
    if len(called["qualified_name"]["path"]) != 1:
        raise seen.refuse(f"the table function {name}", "only some are known to work row by row")
    if name in _ROWLESS_FUNCTIONS:
        if all(_constant(value) is not None for _, value in arguments):
            return
        raise seen.refuse(f"{name} of something that is not a constant")
    paths = [path for key, value in arguments if not key for path in _paths(value)]
    if name not in _PARQUET_READERS:
        if name.startswith("read_"):
            raise _guessed(paths[0] if paths else name, seen)
        raise seen.refuse(f"the table function {name}", "only some are known to work row by row")
    if not paths or sum(not key for key, _ in arguments) != 1:
        raise seen.refuse(f"{name} without a literal path", "its files are not known", "Write the path as a string.")
    options = {key: _constant(value) for key, value in arguments if key}
    for key, value in options.items():
        allowed = _PARQUET_OPTIONS.get(key, set())
        if (value or "").lower() not in allowed:
            wanted = f"Set it to {' or '.join(sorted(allowed))}." if allowed else "Leave it out."
            raise seen.refuse(f"{key} of {name}", "columns could then depend on other rows", wanted)
    if options.get("hive_partitioning") != "false" and options.get("hive_types_autocast") != "false":
        seen.patterns += paths


def _arguments(called: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Arguments with their names, whether given by := or by =."""
    for argument in called["arguments"]:
        name, value = str(argument["name"]), argument["expression"]
        if not name and value["class"] == "COMPARISON" and value["left"]["class"] == "COLUMN_REF":
            name, value = str(value["left"]["column_names"][-1]), value["right"]
        yield name.lower(), value


def _constant(value: dict[str, Any]) -> str | None:
    return str(value["literal"]["text"]) if value["class"] == "CONSTANT" and "literal" in value else None


def _paths(value: dict[str, Any]) -> list[str]:
    """The literal path or list of paths of an argument; empty if it is anything else."""
    if value["class"] == "FUNCTION" and value["function_name"] == "list_value":
        found = [_constant(each) for _, each in _arguments(value)]
    else:
        found = [_constant(value)]
    return [path for path in found if path is not None] if None not in found else []


def _check_expression(kind: str, part: dict[str, Any], seen: _Seen) -> None:
    if kind == "FUNCTION":
        name = str(part["function_name"]).lower()
        if name == "unnest":
            raise seen.refuse("unnest")
        if name not in FUNCTIONS or len(part["qualified_name"]["path"]) != 1:
            if name in _aggregates(seen.ask):
                raise seen.refuse(f"the aggregate {name.removesuffix('_star')}")
            why = "only functions that are known to depend on a single row are run"
            raise seen.refuse(f"the function {name}", why, "Leave it out, or write its values to a Parquet file first.")
        if part["filter"] or part["distinct"] or part["export_state"] or part["order_bys"]["orders"]:
            raise seen.refuse("an aggregate")
        seen.functions.add(name)
    elif kind == "COLUMN_REF":
        name = str(part["column_names"][-1]).lower()
        if name in _POSITION_COLUMNS:
            raise seen.refuse(
                f"the column {name}", "the position of a row depends on the rows before it", "Leave it out."
            )
        if name in _CLOCKS:
            raise seen.refuse(name, "it changes between runs of the query", "Write a fixed date instead.")
    elif kind == "STAR" and part["expr"] and part["expr"]["class"] != "CONSTANT":
        raise seen.refuse("COLUMNS with a condition", "it cannot be analysed", "Name the columns.")


def _refuse_guessed_folders(pattern: str, ask: Ask, where: str) -> None:
    """Refuse partition folders such as year=2020: DuckDB guesses their column types from all folder names."""
    quoted = pattern.replace("'", "''")
    found = [pattern, *(str(path) for (path,) in ask(f"SELECT file FROM glob('{quoted}')"))]
    if any("=" in folder for path in found for folder in re.split(r"[/\\]", path)[:-1]):
        remedy = "Write read_parquet('…', hive_types_autocast = false), or hive_partitioning = false."
        raise InputError(f"{where}: DuckDB guesses types from the names of folders in {pattern!r}. {remedy}")
