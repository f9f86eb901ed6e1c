"""A query that groups by the column that names persons has one row of each, and no person changes another's (P25)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certsynth import Schema, release
from certsynth.domain.persons import Persons
from certsynth.errors import InputError
from certsynth.sources import Unopened, open_source
from certsynth.sources.rowwise import word_set
from small import NoNoise, emitted

CUSTOMER = Persons("customer")
MADE = """
CREATE TABLE v (customer INTEGER, i INTEGER, l BIGINT, x DOUBLE, d DECIMAL(9, 2), h HUGEINT, t BOOLEAN, day DATE,
                b VARCHAR, nocase VARCHAR COLLATE NOCASE, span INTERVAL, file BLOB);
INSERT INTO v VALUES (1, 2, 3, 0.5, 1.25, 7, true, '2020-01-05', 'x', 'y', INTERVAL 1 DAY, 'z'),
                     (1, 3, 4, 0.25, 2.25, 8, false, '2020-01-06', 'w', 'Y', INTERVAL 1 DAY, 'z'),
                     (NULL, 3, 4, 0.25, 2.25, 8, false, '2020-01-06', 'w', 'Y', INTERVAL 1 DAY, 'z');
CREATE VIEW seen AS SELECT DISTINCT customer, i FROM v;
CREATE VIEW per_customer AS SELECT customer, count(*) AS n FROM v GROUP BY customer;
"""


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("town") / "town.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute(MADE)
    return path


def opened(query: str, town: Path, persons: Persons | None = CUSTOMER) -> Any:
    return open_source(Unopened(query, attached=(("town", str(town)),)), persons=persons)


ACCEPTED = {
    "SELECT customer, count(*) AS a FROM town.v GROUP BY customer": 2,
    "SELECT customer, sum(i) / count(i) AS a FROM town.v GROUP BY customer": 2.5,
    "SELECT customer, sum(CAST(x AS DECIMAL(18, 4))) / count(x) AS a FROM town.v GROUP BY customer;": 0.375,
    "SELECT customer, round(sum(d), 1) AS a FROM town.v GROUP BY customer": 3.5,
    "SELECT customer, min(b) AS a FROM town.v GROUP BY customer": "w",
    "SELECT customer AS customer, max(i) AS a FROM town.v WHERE i > 0 GROUP BY customer HAVING count(*) > 1": 3,
    "SELECT v.customer, median(d) AS a FROM town.v GROUP BY v.customer ORDER BY sum(i), max(i)": 1.75,
    "SELECT customer, quantile_disc(i, 0.3) AS a FROM town.v GROUP BY customer": 2,
    "SELECT customer, quantile_cont(i, 0.5) AS a FROM town.v GROUP BY customer": 2.5,
    "SELECT customer, count(DISTINCT nocase) FILTER (WHERE i > 0) AS a FROM town.v GROUP BY customer": 1,
    "SELECT customer, count_if(t) AS a, bool_or(t) AS o, bool_and(t) AS e FROM town.v GROUP BY customer": 1,
    "SELECT Customer, CASE WHEN max(day) > DATE '2020-01-05' THEN 1 END AS a FROM town.v GROUP BY customer": 1,
    "SELECT customer, sum(y) AS a FROM (SELECT customer, i + 1 AS y FROM town.v) GROUP BY customer": 7,
    "WITH u AS (SELECT customer, i AS y FROM town.v) SELECT customer, bit_xor(y) AS a FROM u GROUP BY customer": 1,
    "SELECT customer, sum(i) AS i, i AS a FROM town.v GROUP BY customer": None,
}


def test_a_query_may_group_by_the_column_that_names_persons(town: Path) -> None:
    for query, value in ACCEPTED.items():
        if value is None:  # DuckDB takes i for the column, which is neither grouped by nor aggregated
            with pytest.raises(InputError, match="'i' is neither grouped by nor aggregated"):
                opened(query, town)
            continue
        names, found = next(opened(query, town).batches(["customer", "a"]))
        assert dict(zip(names, found, strict=True))[1] in (value, str(value)), query


def test_the_key_may_have_another_name_in_the_result(town: Path) -> None:
    query = "SELECT customer AS id, count(*) AS a FROM town.v GROUP BY customer"
    assert next(opened(query, town, Persons("id")).batches(["id", "a"]))
    with pytest.raises(InputError, match="does not have the key of each group as 'customer'"):
        opened(query, town)


ORDER = "its result may depend on the order"
INEXACT = word_set(
    "first last any_value arbitrary list array_agg mode product stddev variance entropy fsum kahan_sum favg histogram "
    "approx_count_distinct kurtosis skewness sem mad bitstring_agg"
)
REFUSED = {
    "SELECT customer, avg(i) AS a FROM town.v GROUP BY customer": "how DuckDB rounds it depends on other rows",
    "SELECT customer, mean(d) AS a FROM town.v GROUP BY customer": "the aggregate mean",
    "SELECT customer, sum(x) AS a FROM town.v GROUP BY customer": f"sum of values of type DOUBLE, and {ORDER}",
    "SELECT customer, sum(x / 2) AS a FROM town.v GROUP BY customer": "Write sum(CAST(… AS DECIMAL(18, 4))).",
    "SELECT customer, sum(i / 2) AS a FROM town.v GROUP BY customer": "sum of values of type DOUBLE",
    "SELECT customer, max(x) AS a FROM town.v GROUP BY customer": "max of values of type DOUBLE",
    "SELECT customer, min(x::FLOAT) AS a FROM town.v GROUP BY customer": "min of values of type FLOAT",
    "SELECT customer, median(x) AS a FROM town.v GROUP BY customer": "median of values of type DOUBLE",
    "SELECT customer, sum(h) AS a FROM town.v GROUP BY customer": "sum of values of type HUGEINT",
    "SELECT customer, count(DISTINCT x) AS a FROM town.v GROUP BY customer": "count of values of type DOUBLE",
    "SELECT x AS customer, count(*) AS a FROM town.v GROUP BY x": "a key of type DOUBLE",
    "SELECT span AS customer, count(*) AS a FROM town.v GROUP BY span": "a key of type INTERVAL",
    "SELECT customer, min(span) AS a FROM town.v GROUP BY customer": "min of values of type INTERVAL",
    "SELECT customer, max([i]) AS a FROM town.v GROUP BY customer": "max of values of type INTEGER[]",
    "SELECT customer, count(*) AS a FROM town.v GROUP BY customer ORDER BY sum(x)": "sum of values of type DOUBLE",
    "SELECT customer, 1 AS a FROM town.v GROUP BY customer HAVING sum(x) > 1": "sum of values of type DOUBLE",
    "SELECT customer, min(nocase) AS a FROM town.v GROUP BY customer": "compares texts by a collation",
    "SELECT nocase AS customer, count(*) AS a FROM town.v GROUP BY nocase": "compares texts by a collation",
    "SELECT customer, min(b COLLATE NOCASE) AS a FROM town.v GROUP BY customer": "COLLATE with GROUP BY",
    **{
        f"SELECT customer, {name}(i) AS a FROM town.v GROUP BY customer": f"the aggregate {name}, and {ORDER}"
        for name in INEXACT
    },
    "SELECT customer, arg_max(b, i) AS a FROM town.v GROUP BY customer": "the aggregate arg_max",
    "SELECT customer, string_agg(b, ',') AS a FROM town.v GROUP BY customer": "the aggregate string_agg",
    "SELECT customer, approx_quantile(i, 0.5) AS a FROM town.v GROUP BY customer": "the aggregate approx_quantile",
    "SELECT customer, corr(i, l) AS a FROM town.v GROUP BY customer": "the aggregate corr",
    "SELECT customer, main.sum(i) AS a FROM town.v GROUP BY customer": "the aggregate sum",
    "SELECT customer, sum(i ORDER BY x) AS a FROM town.v GROUP BY customer": "ORDER BY inside sum",
    "SELECT customer, median(DISTINCT i) AS a FROM town.v GROUP BY customer": "DISTINCT inside median",
    "SELECT customer, max(i, 2) AS a FROM town.v GROUP BY customer": "other arguments of max",
    "SELECT customer, quantile_cont(i, [0.1, 0.5]) AS a FROM town.v GROUP BY customer": "other arguments of quantile",
    "SELECT customer, max(COLUMNS('i')) AS a FROM town.v GROUP BY customer": "COLUMNS or COLLATE with GROUP BY",
    "SELECT customer, sum(random()::INTEGER) AS a FROM town.v GROUP BY customer": "the function random",
    "SELECT customer, count(*) FILTER (WHERE random() > 0.5) AS a FROM town.v GROUP BY customer": "the function random",
    "SELECT customer, count(*) + random() AS a FROM town.v GROUP BY customer": "the function random",
    "SELECT customer, count(*) AS a FROM town.v GROUP BY customer HAVING random() > 0.5": "the function random",
    "SELECT customer, min(rowid) AS a FROM town.v GROUP BY customer": "the column rowid",
    "SELECT customer, max(sum(i)) AS a FROM town.v GROUP BY customer": "the aggregate sum",
    "SELECT customer, sum(i) OVER () AS a FROM town.v GROUP BY customer, i": "several groupings or keys",
    "SELECT customer, row_number() OVER () AS a FROM town.v GROUP BY customer": "a window function",
    "SELECT customer, sum(count(*)) OVER () AS a FROM town.v GROUP BY customer": "a window function",
    "SELECT customer, count(*) AS a FROM town.v GROUP BY customer QUALIFY row_number() OVER () = 1": "QUALIFY",
    "SELECT customer, (SELECT max(i) FROM town.v) AS a FROM town.v GROUP BY customer": "a subquery among its expr",
    "SELECT customer, count(*) AS a FROM town.v GROUP BY customer LIMIT 1": "LIMIT",
    "SELECT DISTINCT customer, count(*) AS a FROM town.v GROUP BY customer": "DISTINCT",
    "SELECT customer, i AS a FROM town.v GROUP BY customer, i": "several groupings or keys",
    "SELECT customer, 1 AS a FROM town.v GROUP BY ROLLUP (customer)": "several groupings or keys",
    "SELECT customer, 1 AS a FROM town.v GROUP BY GROUPING SETS ((customer), ())": "several groupings or keys",
    "SELECT 1 AS customer, count(*) AS a FROM town.v GROUP BY ()": "several groupings or keys",
    "SELECT customer, count(*) AS a FROM town.v GROUP BY ALL": "in the outermost SELECT",
    "SELECT customer, count(*) AS a FROM town.v GROUP BY 1": "does not name a column",
    "SELECT customer % 2 AS customer, count(*) AS a FROM town.v GROUP BY customer % 2": "does not name a column",
    "SELECT customer % 2 AS customer, count(*) AS a FROM town.v GROUP BY customer": "something else under the name",
    "SELECT i AS a, count(*) AS n FROM town.v GROUP BY i": "does not have the key of each group as 'customer'",
    "SELECT max(i) AS customer, i FROM town.v GROUP BY i": "something else under the name 'customer'",
    "SELECT customer, max(i) AS Customer FROM town.v GROUP BY customer": "something else under the name 'Customer'",
    "SELECT customer, 2 AS k, sum(k) AS a FROM town.v GROUP BY customer": "no column 'k' in what it reads",
    "SELECT count(*) AS a FROM town.v": "the aggregate count",
    "SELECT customer, n AS a FROM (SELECT customer, count(*) AS n FROM town.v GROUP BY customer)": "in the outermost",
    "WITH g AS (SELECT customer, count(*) AS a FROM town.v GROUP BY customer) FROM g": "in the outermost SELECT",
    "SELECT customer, n AS a FROM town.per_customer": "in the outermost SELECT",
    "SELECT customer, count(*) AS a FROM town.per_customer GROUP BY customer": "in the outermost SELECT",
    "SELECT customer, count(*) AS a FROM town.seen GROUP BY customer": "DISTINCT",
    "SELECT v.customer, count(*) AS a FROM town.v AS v, town.v AS w GROUP BY v.customer": "a join",
    "SELECT customer, count(*) AS a FROM town.v TABLESAMPLE 10% GROUP BY customer": "a sample",
    "SELECT customer, count(*) AS a FROM 'v.csv' GROUP BY customer": "guesses the types",
    "SELECT customer, 1 AS a FROM town.v GROUP BY customer UNION ALL SELECT 1, 2": "UNION, EXCEPT or INTERSECT",
}


def test_any_other_grouped_query_is_refused(town: Path) -> None:
    for query, says in REFUSED.items():
        with pytest.raises(InputError) as caught:
            opened(query, town)
        assert says in str(caught.value), query
        assert str(caught.value).startswith("data (a SQL query): ")
        assert "\n" not in str(caught.value)


def test_a_macro_in_place_of_an_aggregate_is_refused() -> None:
    with duckdb.connect() as con:
        con.execute(f"{MADE}; CREATE MACRO max(a) AS random()")
        with pytest.raises(InputError, match="max is a user-defined macro"):
            open_source(con.sql("SELECT customer, max(i) AS a FROM v GROUP BY customer"), persons=CUSTOMER)


QUERY = "SELECT customer, count(*) AS a FROM town.v GROUP BY customer"
DECLARED: dict[str, tuple[Persons | None, str]] = {
    "nobody": (None, "say so in the schema: [table] person, with rows_per_person = 1"),
    "several rows": (Persons("customer", 2), "Let rows_per_person be 1"),
    "missing ids": (Persons("customer", missing="separate"), "Let missing_person be 'drop'"),
}


@pytest.mark.parametrize("case", DECLARED)
def test_persons_must_be_declared_with_one_row_each(case: str, town: Path) -> None:
    persons, says = DECLARED[case]
    with pytest.raises(InputError) as caught:
        opened(QUERY, town, persons)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


RELATIONS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "SQL": (lambda con: con.sql(QUERY.replace("town.", "")), ""),
    "Arrow": (lambda con: con.from_arrow(pa.table({"customer": [1]})).aggregate("customer, count(*)", "customer"), ""),
    "aggregate": (lambda con: con.table("v").filter("i > 0").aggregate("customer, count(*) AS a", "customer"), ""),
    "sum of floats": (lambda con: con.table("v").aggregate("customer, sum(x) AS a", "customer"), "sum of values"),
    "GROUP BY ALL": (lambda con: con.table("v").aggregate("customer, count(*) AS a"), "outermost SELECT"),
    "projected": (lambda con: con.sql(QUERY.replace("town.", "")).project("customer"), "outermost SELECT"),
    "a collation": (lambda con: con.table("v").aggregate("customer, min(nocase) AS a", "customer"), "by a collation"),
    "windows": (lambda con: con.sql("SELECT customer, sum(i) OVER (PARTITION BY customer) AS a FROM v"), "a window"),
}


@pytest.mark.parametrize("case", RELATIONS)
def test_a_grouped_relation_is_analysed_like_a_query(case: str) -> None:
    make, says = RELATIONS[case]
    with duckdb.connect() as con:
        con.execute(MADE)
        relation = make(con)
        if says:
            with pytest.raises(InputError) as caught:
                open_source(relation, persons=CUSTOMER)
            assert says in str(caught.value)
        else:
            assert next(open_source(relation, persons=CUSTOMER).batches(["customer"]))


def test_a_default_collation_is_seen() -> None:
    with duckdb.connect() as con:
        con.execute(MADE)
        con.execute("SET default_collation = 'nocase'")
        for chosen in ("customer, min(b) AS a", "b AS customer, count(*) AS a"):
            key = "b" if chosen.startswith("b") else "customer"
            with pytest.raises(InputError, match="by a collation"):
                open_source(con.sql(f"SELECT {chosen} FROM v GROUP BY {key}"), persons=CUSTOMER)


# ------------------------------------------------------------------------------------------------ neighbouring tables

ASKED = (
    "count(*) AS n, count(d) AS m, count(DISTINCT i) AS u, count(*) FILTER (WHERE x > 0) AS f, sum(i) AS si, "
    "sum(l) AS sl, sum(d) AS sd, sum(CAST(x AS DECIMAL(18, 4))) AS sx, sum(d) / count(d) AS md, "
    "sum(l) / count(l) AS ml, sum(CAST(x AS DECIMAL(18, 4))) / count(x) AS mx, "
    "sum(i::BIGINT + 1) AS s1, sum(DISTINCT d) AS dd, min(d) AS a1, "
    "max(l) AS a2, min(b) AS a3, max(b) AS a4, median(i) AS q1, median(d) AS q2, quantile_cont(l, 0.3) AS q3, "
    "quantile_cont(d, 0.7) AS q4, quantile_disc(i, 0.9) AS q5, bool_and(i > 0) AS b1, bool_or(i IS NULL) AS b2, "
    "count_if(i > 0) AS c1, bit_xor(i) AS x1, round(sum(d) / 7, 1) AS r, CASE WHEN max(i) > 0 THEN 'y' END AS w"
)
TYPES = {
    "customer": pa.int32(),
    "i": pa.int32(),
    "l": pa.int64(),
    "x": pa.float64(),
    "d": pa.decimal128(18, 4),
    "b": pa.string(),
}


def visits(customers: np.ndarray, rng: np.random.Generator) -> pa.Table:
    """Rows of these customers, with numbers whose sums have more digits than a float holds."""
    size = len(customers)
    wide = rng.integers(-(2**62), 2**62, size)
    columns = {
        "customer": customers,
        "i": rng.integers(-(2**31), 2**31, size),
        "l": wide,
        "x": rng.normal(size=size) * 1e6,
        "d": pa.array([int(each) // 10**5 for each in wide]).cast(pa.decimal128(22, 0)).cast(pa.decimal128(18, 4)),
        "b": pa.array([f"t{each % 97}" for each in wide]),
    }
    return pa.table({name: pa.array(values).cast(TYPES[name]) for name, values in columns.items()})


def changed(table: pa.Table, rng: np.random.Generator) -> Iterator[pa.Table]:
    """Tables that differ from this one in all rows of customer 0, or in the order of rows."""
    others = table.filter(pa.compute.not_equal(table["customer"], 0))
    yield others
    yield table.take(rng.permutation(len(table)))
    nulls = pa.table({name: pa.array([0 if name == "customer" else None], kind) for name, kind in TYPES.items()})
    yield pa.concat_tables([nulls, others])
    extreme = pa.table(
        {
            "customer": pa.array([0] * 3, pa.int32()),
            "i": pa.array([2**31 - 1] * 3, pa.int32()),
            "l": pa.array([2**63 - 1] * 3, pa.int64()),
            "x": pa.array([9e13] * 3),
            "d": pa.array([99_999_999_999_999] * 3, pa.int64()).cast(pa.decimal128(22, 0)).cast(pa.decimal128(18, 4)),
            "b": pa.array(["zzzz" * 100] * 3),
        }
    )
    yield pa.concat_tables([others, extreme])
    yield pa.concat_tables([visits(np.zeros(3_000, int), rng), others])


def bits(value: Any) -> Any:
    return struct.pack("d", value) if isinstance(value, float) else value


def rows_of_others(path: Path, asked: str, *, checked: bool = True) -> dict[Any, tuple[Any, ...]]:
    query = f"SELECT customer, {asked} FROM '{path}' GROUP BY customer"
    if checked:
        source = open_source(Unopened(query), persons=CUSTOMER)
        found = [row for batch in source.batches(source.names) for row in zip(*batch, strict=True)]
    else:
        with duckdb.connect(config={"threads": 1}) as alone:  # with several threads the last digits change by chance
            found = alone.sql(query).fetchall()
    assert len({row[0] for row in found}) == len(found)
    return {row[0]: tuple(map(bits, row[1:])) for row in found if row[0] != 0}


def test_no_person_changes_a_bit_of_the_row_of_another(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = visits(rng.integers(0, 300, 6_000), rng)
    differ = 0
    for j, other in enumerate([table, *changed(table, rng)]):
        pq.write_table(other, tmp_path / f"{j}.parquet", row_group_size=int(rng.integers(500, 5_000)))
        assert rows_of_others(tmp_path / f"{j}.parquet", ASKED) == rows_of_others(tmp_path / "0.parquet", ASKED)
        asked = "sum(x) AS s, avg(x) AS a, stddev(i) AS v"  # these are refused
        one, two = (rows_of_others(tmp_path / f"{k}.parquet", asked, checked=False) for k in (0, j))
        differ += one != two
    assert differ, "the comparison sees no last digits"


# ------------------------------------------------------------------------------------------------------ whole releases

SCHEMA = """
[table]
name = "customers"
person = "customer"
rows_per_person = 1

[[column]]
name = "visits"
kind = "integer"
low = 1
high = 40

[[column]]
name = "spent"
kind = "number"
low = -1000000
high = 1000000
"""


def test_a_release_of_a_grouped_query_is_that_of_the_table_that_it_makes(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    pq.write_table(visits(rng.integers(0, 60, 600), rng), tmp_path / "visits.parquet")
    chosen = "SELECT customer, count(*) AS visits, sum(CAST(x AS DECIMAL(18, 4))) / count(x) AS spent"
    query = f"{chosen} FROM '{tmp_path}/visits.parquet' GROUP BY customer"
    duckdb.sql(f"COPY ({query}) TO '{tmp_path}/customers.parquet'")
    schema = Schema.parse(SCHEMA)
    asked = {"epsilon": 2, "sparsity": 1, "certificate_share": 0, "resolution": 4, "mechanism": "identity"}
    made = [
        release(data, schema, seed=1, rows=50, noise=NoNoise(), **asked)
        for data in (Unopened(query), tmp_path / "customers.parquet", duckdb.sql(query))
    ]
    assert made[0].record.privacy.persons == 60
    for other in made[1:]:
        assert other.record == made[0].record
        assert emitted(other).equals(emitted(made[0]))
