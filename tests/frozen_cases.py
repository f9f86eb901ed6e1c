"""The cases of `frozen_bytes`: small tables, and releases, commands and calls that are made with them.

Only public names of certsynth are used here, so that nothing has to follow when its modules move.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from click.testing import CliRunner

import certsynth
from certsynth.cli import main
from frozen_tables import KEY, QUERIES, TABLES, WORKLOAD, as_csv

SEED = 5
"""`--seed` of every run."""

Outputs = dict[str, bytes]
"""What is hashed, by name."""


class Case:
    """Something that is run in a folder with data.csv, public.csv, schema.toml, workload.toml and key.pem."""

    name: str
    slow: bool

    def run(self, here: Run) -> None:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Released(Case):
    """A release, and what all the other commands say of its folder."""

    name: str
    options: str
    table: str = "letters"
    rows: int | None = None
    after: tuple[tuple[str, str], ...] = ()
    told: bool = False
    slow: bool = False

    def run(self, here: Run) -> None:
        here.lay_out(self.table, self.rows)
        arguments = ["data.csv", "--schema", "schema.toml", "--seed", SEED, *self.options.split()]
        here.command("release", "release", *arguments, "--out", "out", "--json")
        here.folder("out")
        here.command("verify", "verify", "out", "--json")
        here.command("answer", "answer", "out", *self.queries, "--json")
        here.command("answer to the last", "answer", "out", QUERIES[self.table][-1], "--json")
        if self.told:
            fresh = [each.replace("ledger.jsonl", "other.jsonl") for each in map(str, arguments)]
            here.command("release in words", "release", *fresh, "--out", "again")
            here.command("verify in words", "verify", "again")
            here.command("answer in words", "answer", "again", *self.queries)
        for name, command in self.after:
            here.command(name, *command.split())

    @property
    def queries(self) -> tuple[str, ...]:
        """Queries that the release can answer. The last of its table it may refuse."""
        if "--columns" in self.options:
            first = self.options.split("--columns ")[1].split()[0].split(",")[0]
            return ("fraction(job = 'trade')",) if first == "job" else (f"mean({first})", f"median({first})")
        return QUERIES[self.table][:1] if "--sparsity 1" in self.options else QUERIES[self.table][:-1]


@dataclass(frozen=True, slots=True)
class Commands(Case):
    """Commands in a folder that holds a release, each with `--json` and in words."""

    name: str
    commands: tuple[tuple[str, str], ...]
    table: str = "letters"
    rows: int | None = None
    slow: bool = False

    def run(self, here: Run) -> None:
        here.lay_out(self.table, self.rows)
        for name, command in self.commands:
            here.command(f"{name}, json", *command.split(), "--json")
            here.tidy()
            here.command(f"{name}, words", *command.split())
            here.tidy()


@dataclass(frozen=True, slots=True)
class Called(Case):
    """Calls from Python."""

    name: str
    call: Callable[[Run], None]
    slow: bool = False

    def run(self, here: Run) -> None:
        self.call(here)


@dataclass(slots=True)
class Run:
    """A case that is being run in the folder `root`, and what has come of it so far."""

    root: Path
    outputs: Outputs = field(default_factory=dict)
    commands: list[list[str]] = field(default_factory=list)

    def lay_out(self, table: str, rows: int | None = None) -> None:
        schema, make, usual = TABLES[table]
        count = usual if rows is None else rows
        (self.root / "schema.toml").write_text(schema)
        (self.root / "data.csv").write_text(as_csv(make(count, 1)))
        (self.root / "public.csv").write_text(as_csv(make(40, 2)))
        (self.root / "workload.toml").write_text(WORKLOAD)
        (self.root / "key.pem").write_bytes(KEY)
        (self.root / "key.pem").chmod(0o600)

    def tidy(self) -> None:
        """Remove what a command has written, so that it can be given again; its bytes are kept."""
        for made in ("drafted.toml", "page.html"):
            path = self.root / made
            if path.exists():
                self.outputs[made] = path.read_bytes()
                path.unlink()

    def command(self, name: str, *arguments: Any) -> None:
        given = [str(argument) for argument in arguments]
        self.commands.append(given)
        done = CliRunner().invoke(main, given)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        said = "".join(line for line in done.stderr.splitlines(keepends=True) if not line.startswith("progress: "))
        self.outputs[f"{name}.stdout"] = done.stdout.encode()
        self.outputs[f"{name}.stderr"] = f"{said}exit code {done.exit_code}\n".encode()

    def folder(self, name: str) -> None:
        """The files of a release folder. Of what depends on a library's version, the content is kept."""
        folder = self.root / name
        files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())} if folder.exists() else {}
        self.outputs[f"{name}/files"] = "\n".join(files).encode()
        by_digest = {hashlib.sha256(content).hexdigest(): file for file, content in files.items()}
        for file, content in files.items():
            if file == "synthetic.parquet":
                content = rows_of_parquet(folder / file)
            elif file == "measurements.npz":
                content = arrays_of_archive(content)
            elif file.endswith(".sig"):
                continue  # it signs the digests, and so bytes of Parquet; `verify --key` is among the commands
            elif file in ("SHA256SUMS", "croissant.json"):
                content = re.sub(r"[0-9a-f]{64}", lambda m: f"<{by_digest.get(m[0], m[0])}>", content.decode()).encode()
            self.outputs[f"{name}/{file}"] = content

    def value(self, name: str, value: Any) -> None:
        text = value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False, default=str)
        self.outputs[name] = f"{text}\n".encode()


def rows_of_parquet(path: Path) -> bytes:
    with duckdb.connect() as connection:
        found = connection.execute("SELECT * FROM read_parquet(?)", [str(path)])
        head = [f"{name} {kind}" for name, kind, *_ in found.description]
        return "".join(f"{row!r}\n" for row in (tuple(head), *found.fetchall())).encode()


def arrays_of_archive(content: bytes) -> bytes:
    lines = []
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        for name in arrays:
            array = arrays[name]
            if name == "about":
                lines.append(json.dumps(json.loads(array.tobytes()), indent=1))
            else:
                lines += [f"{name} {array.dtype} {array.shape}", *map(str, array.ravel().tolist())]
    return "".join(f"{line}\n" for line in lines).encode()


def called_from_python(here: Run) -> None:
    """The library's own calls, on frames and files."""
    here.lay_out("letters")
    schema = certsynth.Schema.load("schema.toml")
    options: dict[str, Any] = {"epsilon": 3, "mechanism": "identity", "resolution": 2}
    made = certsynth.release("data.csv", schema, seed=SEED, **options)
    here.value("repr", repr(made))
    here.value("html", made._repr_html_())
    here.value("certificate html", made.certificate._repr_html_())
    made.save("saved")
    here.folder("saved")
    loaded = certsynth.Release.load("saved")
    here.value("pandas", loaded.to_pandas().to_csv(index=False))
    here.value("polars", loaded.to_polars().write_csv())
    here.value("arrow", loaded.to_arrow().to_pylist())
    here.value("checks", loaded.verify())
    here.value("not checked", loaded.cannot_verify())
    here.value("function", repr(loaded.answer(lambda a: a / 2, columns=["a"], slopes={"a": 0.5}, bounds=(0, 3))))
    here.value("answer", repr(loaded.answer("mean(a)")))
    found = certsynth.certify("data.csv", "public.csv", schema, epsilon=50, per_subset=True)
    here.value("certify", found.to_json())
    here.value("evaluate", certsynth.evaluate("data.csv", "public.csv", schema).to_json())
    here.value("plan", certsynth.plan(schema, rows=120, **options).to_json())


def sampled(here: Run) -> None:
    """More rows of a release."""
    here.lay_out("letters")
    schema = certsynth.Schema.load("schema.toml")
    options: dict[str, Any] = {"mechanism": "identity", "resolution": 4, "seed": SEED}
    kinds: list[dict[str, Any]] = [
        {"epsilon": 8},
        {"rho": 2, "subsets": [["a", "b"], ["c"]]},
        {"epsilon": 8, "projection": "full-grid", "loss": "path"},
        {"epsilon": 8, "public": "public.csv", "projection": "public"},
        {"epsilon": 8, "neighbours": "add-remove", "rows": 90},
    ]
    for i, kind in enumerate(kinds):
        synthesizer = certsynth.CertifiedSynthesizer(schema, **options, **kind)
        synthesizer.fit("data.csv")
        here.value(f"fitted {i}", f"{synthesizer!r}\n{synthesizer.times_spent_}\n{synthesizer._repr_html_()}")
        here.value(f"certified rows {i}", synthesizer.sample(frame="polars").write_csv())
        more = synthesizer.sample(150, seed=SEED, frame="polars")
        here.value(f"sample {i}", f"{more!r}\n{more.confidence!r}\n{more._repr_html_()}")
        here.value(f"rows {i}", more.table.write_csv())


def read_from(source: str, here: Run) -> None:
    """The same rows as a Parquet file, a relation or a frame: the folders must be the same, too."""
    import polars

    here.lay_out("staff", 60)
    schema = certsynth.Schema.load("schema.toml")
    frame = polars.read_csv("data.csv", try_parse_dates=True)
    frame.write_parquet("data.parquet")
    options: dict[str, Any] = {"epsilon": 40, "mechanism": "identity", "resolution": 2, "seed": SEED}
    options |= {"columns": ["age", "hired", "member", "job"]}
    with duckdb.connect() as connection:
        relation = connection.sql("SELECT * FROM read_parquet('data.parquet')")
        data: dict[str, Any] = {"polars": frame, "pandas": frame.to_pandas(), "arrow": frame.to_arrow()}
        data |= {"csv": "data.csv", "parquet": "data.parquet", "relation": relation}
        certsynth.release(data[source], schema, out="out", **options)
    here.folder("out")


SOURCES = ("csv", "parquet", "relation", "polars", "pandas", "arrow")


def cases() -> list[Case]:
    """Every case."""
    quick = "--mechanism identity --resolution 2"
    hidden = "--neighbours add-remove --rows 90"
    persons = "--columns a,c --person b --rows-per-person 3"
    strategies = ["identity", "haar", "haar-hilbert", "haar-tour", "haar-weighted", "quad-tree", "haar-noisy-total"]
    signed = (
        ("verify, key", "verify out --key out/signer.pem --json"),
        ("verify, key, words", "verify out --key out/signer.pem"),
    )
    ledger = (
        ("ledger", "ledger ledger.jsonl --json"),
        ("ledger in words", "ledger ledger.jsonl --release out --release again"),
        ("ledger, release", "ledger ledger.jsonl --release out --json"),
        (
            "certify on the ledger",
            "certify data.csv out/synthetic.csv --schema schema.toml --epsilon 1 --ledger ledger.jsonl --json",
        ),
        ("beyond the cap", "certify data.csv out/synthetic.csv --schema schema.toml --epsilon 9 --ledger ledger.jsonl"),
    )
    return [
        Released("default, epsilon", "--epsilon 2", told=True),
        Released("default, delta", "--epsilon 2 --delta 1e-6"),
        Released("default, rho", "--rho 0.5 --resolution auto --mechanism auto --columns a,b"),
        Released("default, add-remove", f"--epsilon 4 {hidden} --verbose", told=True),
        Released("default, every kind", "--epsilon 9", table="staff", slow=True),
        Released("epsilon", f"--epsilon 3 {quick}", told=True, after=(("report", "report out --json"),)),
        Released("delta", f"--epsilon 2 --delta 1e-6 {quick}", told=True),
        Released("rho", f"--rho 0.5 {quick}", told=True),
        Released("rho and epsilon", f"--rho 0.1 --epsilon 2 {quick}"),
        Released("rho and delta", f"--rho 0.1 --delta 1e-9 {quick}"),
        Released("add-remove, epsilon", f"--epsilon 3 {quick} {hidden}", told=True),
        Released("add-remove, delta", f"--epsilon 3 --delta 1e-6 {quick} {hidden}"),
        Released("add-remove, rho, triples", f"--rho 1 {quick} {hidden} --sparsity 3"),
        Released("paper", "--epsilon 5 --preset paper --resolution 2", told=True),
        Released("paper, add-remove", f"--epsilon 5 --preset paper --resolution 2 {hidden}"),
        Released("paper, workload", "--epsilon 5 --preset paper --resolution 2 --workload workload.toml"),
        Released("path, drawn", f"--epsilon 9 {quick} --loss path --projection drawn"),
        Released("path, full grid", f"--epsilon 9 {quick} --loss path --projection full-grid"),
        Released("path, public", f"--epsilon 9 {quick} --loss path --projection public --public public.csv"),
        Released("transport, drawn", f"--epsilon 9 {quick} --loss transport --projection drawn"),
        Released("transport, full grid", f"--epsilon 9 {quick} --loss transport --projection full-grid"),
        Released("transport, public", f"--epsilon 9 {quick} --loss transport --projection public --public public.csv"),
        Released("particles, public", f"--epsilon 9 {quick} --projection particles --public public.csv"),
        *(
            Released(f"mechanism {name}", f"--epsilon 9 --mechanism {name} --resolution 4 --columns a,b")
            for name in strategies
        ),
        *(
            Released(
                f"mechanism {name}, rho, add-remove",
                f"--rho 2 --mechanism {name} --resolution 4 --columns a,b {hidden}",
            )
            for name in strategies
            if name != "haar-noisy-total"
        ),
        Released("adaptive", "--epsilon 5 --mechanism adaptive --target a", told=True),
        Released("adaptive, rho, add-remove", f"--rho 2 --mechanism adaptive {hidden}", table="staff"),
        Released("low-dimensional", "--epsilon 5 --mechanism low-dimensional", table="curve", told=True),
        Released("low-dimensional, a grid", "--epsilon 5 --mechanism low-dimensional --resolution 4", table="curve"),
        *(
            Released(
                f"{name}, few of many cells{relation}",
                f"--epsilon 20 --mechanism {name} --resolution 64 {options}",
                table="curve",
            )
            for name in ("low-dimensional", "low-dimensional-l1")
            for relation, options in (("", ""), (", add-remove", hidden))
        ),
        Released(
            "low-dimensional, every kind",
            "--epsilon 20 --mechanism low-dimensional --columns age,grade,job,colour",
            table="staff",
        ),
        Released("low-dimensional, add-remove", f"--epsilon 5 --mechanism low-dimensional {hidden}", table="curve"),
        Released("low-dimensional-l1", "--epsilon 5 --mechanism low-dimensional-l1", table="curve"),
        Released(
            "low-dimensional-l1, a grid", "--epsilon 5 --mechanism low-dimensional-l1 --resolution 4", table="curve"
        ),
        Released("workload", f"--epsilon 5 {quick} --workload workload.toml", told=True),
        Released("workload, rho, hidden", f"--rho 1 {quick} {hidden} --workload workload.toml"),
        Released(
            "workload, no direct certificate", f"--epsilon 40 {quick} --certificate-share 0 --workload workload.toml"
        ),
        Released("single columns", "--epsilon 2 --mechanism identity --sparsity 1"),
        Released("single columns, add-remove", f"--epsilon 2 {quick} --sparsity 1 {hidden}"),
        Released("triples", f"--epsilon 5 {quick} --sparsity 3"),
        Released("candidates", f"--epsilon 5 {quick} --candidates 3"),
        Released("candidates, rho", f"--rho 2 {quick} --candidates 2"),
        Released("exceptions", f"--epsilon 5 {quick} --exceptions 1"),
        Released(
            "persons",
            f"--epsilon 40 {quick} {persons} --weigh rows --missing-person drop --rows 90",
            told=True,
            after=tuple(
                (command, f"{command} data.csv out/synthetic.csv --schema schema.toml {persons} {options}")
                for command, options in (("certify", "--epsilon 9"), ("evaluate", "--weigh persons"))
            ),
        ),
        Released(
            "persons, each counts 1",
            f"--epsilon 40 {quick} {persons} --weigh persons --missing-person separate",
            told=True,
        ),
        Released("persons, rho, add-remove", f"--rho 40 {quick} {persons} {hidden} --measure-dropped"),
        Released("no direct certificate", f"--epsilon 40 {quick} --certificate-share 0", told=True),
        Released("no direct certificate, particles", f"--rho 8 {quick} --certificate-share 0 --projection particles"),
        Released("no direct certificate, hidden", f"--rho 8 {quick} --certificate-share 0 {hidden}"),
        Released("other confidence and share", f"--epsilon 5 {quick} --confidence 0.8 --certificate-share 1/3"),
        Released("every kind", f"--epsilon 60 {quick}", table="staff", told=True),
        Released("every kind, rho, add-remove", f"--rho 90 {quick} {hidden}", table="staff"),
        Released(
            "every kind, triples of some",
            f"--epsilon 9 {quick} --sparsity 3 --columns age,job,colour,grade",
            table="staff",
        ),
        Released(
            "labels, haar-tour", "--epsilon 9 --mechanism haar-tour --resolution 4 --columns job,colour", table="staff"
        ),
        Released("one column", "--epsilon 2 --columns a --mechanism haar-hilbert"),
        Released("one row", f"--epsilon 2 {quick}", rows=1),
        Released("no rows", f"--epsilon 2 {quick}", rows=0),
        Released("no rows, add-remove", f"--epsilon 2 {quick} {hidden}", rows=0),
        Released("more rows", f"--epsilon 2 {quick} --rows 700"),
        Released("signed", f"--epsilon 2 {quick} --sign key.pem", after=signed),
        Released(
            "ledger",
            f"--epsilon 2 {quick} --ledger ledger.jsonl --cap 4 --dataset town",
            told=True,
            after=ledger,
        ),
        Called("query", queried),
        Commands(
            "certify",
            tuple(
                (name, f"certify data.csv public.csv --schema schema.toml {options}")
                for name, options in {
                    "pairs": "--epsilon 20",
                    "rho, each": "--rho 2 --per-subset",
                    "delta, triples": "--epsilon 9 --delta 1e-6 --sparsity 3",
                    "add-remove": "--epsilon 20 --neighbours add-remove --lattice 32 --confidence 0.8",
                    "workload": "--epsilon 20 --workload workload.toml",
                    "one column": "--epsilon 20 --columns a",
                }.items()
            ),
        ),
        Commands(
            "certify and evaluate every kind",
            (
                ("certify", "certify data.csv public.csv --schema schema.toml --epsilon 90 --lattice 16"),
                ("evaluate", "evaluate data.csv public.csv --schema schema.toml --lattice 16"),
                (
                    "evaluate four columns",
                    "evaluate data.csv public.csv --schema schema.toml --sparsity 4 --columns age,grade,member,colour",
                ),
            ),
            table="staff",
        ),
        Commands(
            "evaluate",
            (
                ("pairs", "evaluate data.csv public.csv --schema schema.toml"),
                ("workload", "evaluate data.csv public.csv --schema schema.toml --workload workload.toml"),
                ("triples", "evaluate data.csv public.csv --schema schema.toml --sparsity 3 --lattice 8"),
            ),
        ),
        Commands(
            "plan",
            tuple(
                (name, f"plan --schema schema.toml --rows 120 {options}")
                for name, options in {
                    "epsilon": f"--epsilon 3 {quick}",
                    "delta, add-remove": f"--epsilon 3 --delta 1e-6 {quick} --neighbours add-remove",
                    "paper": "--epsilon 3 --preset paper --resolution 2",
                    "workload": f"--rho 1 {quick} --workload workload.toml",
                    "program": f"--epsilon 3 {quick} --loss path --projection full-grid",
                    "no direct certificate": f"--epsilon 30 {quick} --certificate-share 0 --confidence 0.9",
                    "low-dimensional": "--epsilon 5 --mechanism low-dimensional",
                    "low-dimensional-l1": "--epsilon 5 --mechanism low-dimensional-l1 --resolution 4",
                }.items()
            ),
        ),
        Commands(
            "plan, all mechanisms",
            (
                ("auto", "plan --schema schema.toml --rows 120 --epsilon 2 --columns a,b"),
                ("verbose", "plan --schema schema.toml --rows 120 --epsilon 2 --columns a,b --verbose"),
            ),
        ),
        Commands("schema", (("letters", "schema data.csv --out drafted.toml --name town"),)),
        Commands("check", (("fit", "check data.csv --schema schema.toml"),)),
        Commands("schema of every kind", (("staff", "schema data.csv --out drafted.toml"),), table="staff"),
        Called("python", called_from_python),
        Called("sample", sampled),
        *(Called(f"source {name}", functools.partial(read_from, name)) for name in SOURCES),
        Called("report", reported),
        Called("demo", demonstrated),
    ]


def queried(here: Run) -> None:
    """Rows that a query names, in a database of its own."""
    here.lay_out("letters")
    with duckdb.connect("town.duckdb") as connection:
        connection.execute("CREATE TABLE rows AS SELECT * FROM read_csv('data.csv')")
    data = ["SELECT * FROM town.rows WHERE a > 1", "--sql", "--attach", "town=town.duckdb", "--engine", "duckdb"]
    data += ["--schema", "schema.toml", "--epsilon", "2"]
    options = ["--mechanism", "identity", "--resolution", "2", "--seed", str(SEED), "--quiet"]
    here.command("release", "release", *data, *options, "--out", "out", "--json")
    here.folder("out")
    here.command("certify", "certify", data[0], "public.csv", *data[1:], "--json")
    here.command("evaluate", "evaluate", data[0], "public.csv", *data[1:-2], "--json")


def reported(here: Run) -> None:
    """A report that is written again."""
    here.lay_out("letters")
    here.command(
        "release",
        *("release", "data.csv", "--schema", "schema.toml", "--rho", 1, "--mechanism", "haar", "--resolution", 2),
        *("--out", "out", "--seed", SEED),
    )
    for form in ([], ["--json"]):
        here.command(f"report {form}", "report", "out", "--out", "page.html", *form)
        here.tidy()
        here.command(f"the same report {form}", "report", "out", *form)


def demonstrated(here: Run) -> None:
    """The demo, with `--json` and in words."""
    for form in ([], ["--json"]):
        here.command(f"demo {form}", "demo", "--out", "demo", "--rows", "200", *form)
        here.folder("demo/release")
        for file in ("people.csv", "draft.toml", "schema.toml", "shuffled.csv", "ledger.jsonl"):
            here.outputs[f"demo {form}/{file}"] = (here.root / "demo" / file).read_bytes()
        shutil.rmtree(here.root / "demo")
