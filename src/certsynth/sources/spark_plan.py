"""Accept only row-wise Spark plans: each row of a DataFrame depends on one row of one table, and on nothing else.

The analysed plan has views and common table expressions expanded, and every aggregate, window and generator as a node
of its own. Nodes on the allow-list work row by row; all others are refused, and so are files whose types Spark guesses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from certsynth.domain.persons import Persons
from certsynth.errors import InputError
from certsynth.sources.rowwise import word_set
from certsynth.sources.spark_grouped import class_name, each, refuse_other_groups

_STEPS = word_set(
    "Project Filter SubqueryAlias View Sort Repartition RepartitionByExpression RebalancePartitions ResolvedHint "
    "WithCTE CTERelationDef CTERelationRef"
)
_TABLES = word_set(
    "LogicalRelation HiveTableRelation DataSourceV2Relation LogicalRDD LocalRelation OneRowRelation Range"
)
"""Sources of rows. How an RDD was computed, or what a database does behind JDBC, is not visible."""

_DECLARING = ("ParquetFileFormat", "OrcFileFormat", "AvroFileFormat")
"""File formats that declare the types of their columns."""

_WORDS = {
    "Aggregate": "an aggregate",
    "Distinct": "DISTINCT",
    "Deduplicate": "DISTINCT or dropDuplicates",
    "Join": "a join",
    "Union": "UNION",
    "Except": "EXCEPT",
    "Intersect": "INTERSECT",
    "Window": "a window function",
    "Generate": "explode",
    "GlobalLimit": "LIMIT",
    "LocalLimit": "LIMIT",
    "Offset": "OFFSET",
    "Tail": "LIMIT",
    "Sample": "a sample",
    "Pivot": "PIVOT",
    "MapInArrow": "mapInArrow",
    "MapInPandas": "mapInPandas",
}
_MANY = "one private row could change many rows of the result"
_ONE_ROW_EACH = "Save a table in which one row is one person, and give that."
_DECLARE_PERSONS = (
    f"{_ONE_ROW_EACH} If it groups by the column that names persons, say so in the schema: [table] person, with "
    "rows_per_person = 1."
)
_STATED = "Save it as Parquet with a stated type for each column, and give that."
_FOLDERS = "spark.sql.sources.partitionColumnTypeInference.enabled"


def refuse_other_plans(frame: Any, where: str, persons: Persons | None = None) -> None:
    """Refuse a DataFrame whose plan is not row-wise over a table with declared types. Nothing is run.

    If a column names `persons`, the plan may have one aggregation by that column.
    The plan of a Spark Connect frame is not available here: such a frame is accepted as a table.
    """
    if ".connect." in type(frame).__module__:
        return
    plan = frame._jdf.queryExecution().analyzed()
    nodes = list(_nodes(plan))
    allowed = _STEPS | _TABLES
    if persons is not None:
        refuse_other_groups(plan, nodes, persons, where)
        allowed |= {"Aggregate"}
    for node in nodes:
        name = class_name(node)
        if name not in allowed:
            remedy = _DECLARE_PERSONS if name == "Aggregate" else _ONE_ROW_EACH
            raise InputError(f"{where}: it has {_WORDS.get(name, name)}, and {_MANY}. {remedy}")
        if not node.subqueries().isEmpty():
            raise InputError(f"{where}: it has a subquery among its expressions, and {_MANY}. {_ONE_ROW_EACH}")
        if name == "LogicalRelation":
            _refuse_guessed_types(node, where)
        for expression in each(node.expressions()):
            _refuse_other_expressions(expression, where)


def _refuse_guessed_types(node: Any, where: str) -> None:
    relation = node.relation()
    if class_name(relation) != "HadoopFsRelation":
        return  # a database declares its types
    kind = class_name(relation.fileFormat())
    if not kind.endswith(_DECLARING):
        found = kind.removesuffix("FileFormat")
        raise InputError(f"{where}: how Spark reads a row of {found} depends on other rows. {_STATED}")
    folders = [field.dataType().simpleString() for field in relation.partitionSchema().fields()]
    if node.catalogTable().isEmpty() and set(folders) - {"string"}:
        remedy = f"Set {_FOLDERS} to false, or read a table that declares them"
        raise InputError(f"{where}: Spark guesses types from the names of its folders. {remedy}.")


def _refuse_other_expressions(expression: Any, where: str) -> None:
    name = class_name(expression)
    if "UDF" in name:
        raise InputError(f"{where}: it has a user-defined function, which may look at many rows. {_ONE_ROW_EACH}")
    if not expression.deterministic():
        raise InputError(f"{where}: it has a function that depends on more than the values of one row. {_ONE_ROW_EACH}")
    if name == "AttributeReference" and str(expression.name()) == "_metadata":
        raise InputError(f"{where}: it has _metadata, and the position of a row depends on other rows. Leave it out.")
    for child in each(expression.children()):
        _refuse_other_expressions(child, where)


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    for child in each(plan.children()):
        yield from _nodes(child)
