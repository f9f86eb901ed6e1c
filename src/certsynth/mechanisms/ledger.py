"""Ledgers: the privacy budget spent on a data set, over all releases and certificates.

A ledger is a chain of lines (`chain.py`). The first states its terms: a data set, a cap, a unit and a neighbour
relation. A `reserve` line is on disk before any noise is drawn, and a `commit` line follows when the result is written;
without it the amount counts as spent all the same. docs/explanation/proofs/composition.md proves that the cap holds
whatever crashes.
"""

from __future__ import annotations

import datetime
import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import NoneType
from typing import Any

from certsynth.algorithm.checks import MAX_DELTA, amount
from certsynth.base.html import block, paragraph, table
from certsynth.errors import CheckFailed, InputError
from certsynth.mechanisms.chain import Chain, open_chain, require_locks
from certsynth.mechanisms.guarantee import (
    Charge,
    Neighbours,
    Unit,
    decimal_text,
    stored_rational,
)

FORMAT = "certsynth-ledger/1"
MAX_NAME_CHARACTERS = 200

_KEYS = {
    "open": {"format", "dataset", "table", "cap", "unit", "neighbours"},
    "reserve": {"what", "amount", "delta", "nonce"},
    "commit": {"reservation", "manifest"},
}
_COMMON_KEYS = {"event", "time", "previous"}
_OPTIONAL_KEYS = {"open": {"person"}}


@dataclass(frozen=True, slots=True)
class Entry:
    """A charge: `reservation` is the hash of its line, `manifest` the hash of the result.

    It is `finished` when the result is written. A result kept in memory has no manifest.
    """

    time: str
    what: str
    amount: Fraction
    delta: Fraction
    reservation: str
    finished: bool
    manifest: str | None


@dataclass(frozen=True, slots=True, repr=False)
class Ledger:
    """The state of a ledger when it was read, with a valid chain of hashes. `table` is the schema's name at first use.

    `cap` is the most that may ever be spent, in `unit` (ε or ρ), and `entries` are the charges. `head` is the hash of
    the last line; a copy of it kept elsewhere reveals later whether the file was rolled back. `cut_off` counts lines
    that a crash truncated: no noise was drawn for them, since it is drawn only after the line is on disk. `person` is
    the column that names the protected persons; None if single rows are protected.
    """

    dataset: str
    table: str
    cap: Fraction
    unit: Unit
    neighbours: Neighbours
    entries: tuple[Entry, ...]
    head: str
    cut_off: int
    person: str | None = None

    @classmethod
    def load(cls, path: str | Path) -> Ledger:
        """Read a ledger and check its chain."""
        with open_chain(Path(path), write=False) as chain:
            ledger = cls._read(chain)
        if ledger is None:
            raise InputError(f"{path} is empty: it becomes a ledger when something is first charged to it.")
        return ledger

    @classmethod
    def _read(cls, chain: Chain) -> Ledger | None:
        """The ledger that a chain records; None if the chain is empty."""
        if not chain.lines:
            return None
        says = [_validate_line(line.says) for line in chain.lines]
        terms = says[0]
        if not terms or terms["event"] != "open" or terms["format"] != FORMAT:
            raise InputError(f"{chain.path} is not a ledger of certsynth; it is left as it is. Choose another file.")
        chain.check()
        finished = {each["reservation"]: each["manifest"] for each in says if each and each["event"] == "commit"}
        whole = all(each is not None for each, line in zip(says, chain.lines, strict=True) if line.says is not None)
        if not whole or sum(each is not None and each["event"] == "open" for each in says) > 1:
            raise CheckFailed(f"{chain.path} holds a line that certsynth does not write: somebody has changed it.")
        ledger = cls(
            dataset=terms["dataset"],
            table=terms["table"],
            cap=stored_rational(terms["cap"]),
            unit=Unit(terms["unit"]),
            neighbours=Neighbours(terms["neighbours"]),
            entries=tuple(
                Entry(
                    time=each["time"],
                    what=each["what"],
                    amount=stored_rational(each["amount"]),
                    delta=stored_rational(each["delta"]),
                    reservation=line.digest,
                    finished=line.digest in finished,
                    manifest=finished.get(line.digest),
                )
                for each, line in zip(says, chain.lines, strict=True)
                if each and each["event"] == "reserve"
            ),
            head=chain.head,
            cut_off=sum(line.says is None for line in chain.lines),
            person=terms.get("person"),
        )
        if ledger.remaining < 0:
            raise CheckFailed(f"{chain.path} says that more was spent than its cap: somebody has changed it.")
        return ledger

    @property
    def spent(self) -> Fraction:
        """The exact amount spent so far, in `unit`."""
        return sum((entry.amount for entry in self.entries), Fraction(0))

    @property
    def delta(self) -> Fraction:
        """The sum of all δ, which add up separately from ε."""
        return sum((entry.delta for entry in self.entries), Fraction(0))

    @property
    def remaining(self) -> Fraction:
        """The amount that may still be spent, in `unit`."""
        return self.cap - self.spent

    def __repr__(self) -> str:
        spent, cap = decimal_text(self.spent), decimal_text(self.cap)
        return f"Ledger({self.dataset!r}: {self.unit} {spent} of {cap} spent, {len(self.entries):,} entries)"

    def _repr_html_(self) -> str:
        """All charges, for a notebook."""
        head = [self.unit, "delta", "what", "finished", "time"]
        rows = [
            [decimal_text(e.amount), decimal_text(e.delta), e.what, "yes" if e.finished else "no", e.time]
            for e in self.entries
        ]
        summary = (
            f"{self.dataset}: {self.unit} {decimal_text(self.spent)} of {decimal_text(self.cap)} spent, "
            f"{decimal_text(self.remaining)} left, under {self.neighbours} neighbours"
            f"{'' if self.person is None else f', {protected(self.person)}'}"
        )
        return block(paragraph(summary, strong=True), table(head, rows))

    def holds(self, manifest: str) -> bool:
        """Whether the result with this hash was charged to this ledger."""
        return any(entry.manifest == manifest for entry in self.entries)

    def to_json(self) -> dict[str, Any]:
        """The output of `certsynth ledger --json`."""
        return {
            "dataset": self.dataset,
            "unit": str(self.unit),
            "neighbours": str(self.neighbours),
            "person": self.person,
            "cap": float(self.cap),
            "spent": float(self.spent),
            "remaining": float(self.remaining),
            "delta": float(self.delta),
            "exact": {name: str(getattr(self, name)) for name in ("cap", "spent", "remaining", "delta")},
            "entries": [
                {
                    "time": entry.time,
                    "what": entry.what,
                    str(self.unit): float(entry.amount),
                    "delta": float(entry.delta),
                    "finished": entry.finished,
                    "manifest": entry.manifest,
                    "reservation": entry.reservation,
                }
                for entry in self.entries
            ],
            "cut_off": self.cut_off,
            "head": self.head,
        }


@dataclass(frozen=True, slots=True)
class Account:
    """Access to a ledger for charging it.

    `cap` and `dataset` are fixed by the first use; later they may be omitted, and must not differ. `table` is the
    schema's name for the rows, which serves as the data set's name if none is given. If it differs from that of the
    first use, `dataset` must be given, since the ledger may belong to other rows.
    """

    path: Path
    cap: Fraction | None = None
    dataset: str | None = None
    table: str = ""

    @classmethod
    def of(cls, path: str | Path | None, *, cap: Any, dataset: str | None, table: str) -> Account | None:
        """The account for these options, checked; None without a ledger."""
        if path is None:
            if cap is not None or dataset is not None:
                raise InputError("`cap` and `dataset` belong to a ledger: give `ledger` as well, or leave them out.")
            return None
        if dataset is not None and not (0 < len(dataset) <= MAX_NAME_CHARACTERS and dataset.isprintable()):
            raise InputError(f"`dataset` must be a name of 1 to {MAX_NAME_CHARACTERS} printable characters.")
        most = None if cap is None else amount("cap", cap)
        return cls(path=Path(path), cap=most, dataset=dataset, table=table)

    def check(self, charge: Charge) -> None:
        """Raise if `reserve` would refuse the charge; nothing is written."""
        require_locks()
        there, parent = os.path.lexists(self.path), self.path.parent
        if not parent.is_dir():
            raise InputError(f"{parent} is not a folder; make it first, or choose another `ledger`.")
        if not os.access(self.path if there else parent, os.W_OK):
            raise InputError(f"the ledger {self.path} cannot be written; choose another `ledger`.")
        ledger = None
        if there:
            with open_chain(self.path, write=False) as chain:
                ledger = Ledger._read(chain)
        self._refuse(ledger, charge)

    def reserve(self, charge: Charge, *, what: str) -> str:
        """Record the charge as spent, irrevocably; returns the hash of its line, which is then on disk."""
        sys.audit("certsynth.ledger.open")
        with open_chain(self.path, write=True) as chain:
            ledger = Ledger._read(chain)
            self._refuse(ledger, charge)
            if ledger is None:
                sys.audit("certsynth.ledger.begin")
                self._begin(chain, charge)
            sys.audit("certsynth.ledger.reserve")
            says = {
                "event": "reserve",
                "what": what,
                "amount": str(charge.amount),
                "delta": str(charge.delta),
                "time": _now(),
                "nonce": secrets.token_hex(16),  # the hash of the line is published and must not reveal its content
            }
            return chain.append(says).digest

    def commit(self, reservation: str, manifest: str | None) -> None:
        """Record that the result of a reservation is written; `manifest` is its hash."""
        sys.audit("certsynth.ledger.commit")
        with open_chain(self.path, write=True) as chain:
            ledger = Ledger._read(chain)
            if ledger is None or all(entry.reservation != reservation for entry in ledger.entries):
                raise CheckFailed(f"{self.path} no longer has what was reserved in it: somebody has changed it.")
            chain.append({"event": "commit", "reservation": reservation, "manifest": manifest, "time": _now()})

    def _begin(self, chain: Chain, charge: Charge) -> None:
        chain.append(
            {
                "event": "open",
                "format": FORMAT,
                "dataset": self.dataset or self.table,
                "table": self.table,
                "cap": str(self.cap),
                "unit": str(charge.unit),
                "neighbours": str(charge.neighbours),
                **({} if charge.person is None else {"person": charge.person}),
                "time": _now(),
            }
        )

    def _refuse(self, ledger: Ledger | None, charge: Charge) -> None:
        """Raise unless the ledger, or a new one, has the same terms and enough budget left for the charge."""
        path = self.path
        if ledger is None:
            if self.cap is None:
                raise InputError(f"{path} is a new ledger: say with `cap` how much may ever be spent on the data set.")
            _check_room(path, charge, cap=self.cap, spent=Fraction(0), delta=Fraction(0))
            return
        theirs = f"{path} is the ledger of the data set {ledger.dataset!r}"
        if self.dataset is not None and self.dataset != ledger.dataset:
            raise InputError(
                f"{theirs}, not of {self.dataset!r}: a ledger is for one data set. Choose another `ledger`."
            )
        if self.dataset is None and self.table not in (ledger.table, ledger.dataset):
            raise InputError(
                f"{theirs}, and the schema's table is {self.table!r}: if they are the same rows, say "
                f"`dataset={ledger.dataset!r}`; if not, choose another `ledger`."
            )
        if self.cap is not None and self.cap != ledger.cap:
            raise InputError(
                f"{path} has a cap of {decimal_text(ledger.cap)} since its first use, and it cannot become "
                f"{decimal_text(self.cap)}. Leave `cap` out."
            )
        if charge.unit is not ledger.unit:
            raise InputError(
                f"{path} counts in {ledger.unit}, to which {charge.unit} does not add: ask with `{ledger.unit}`, or "
                "choose another `ledger`."
            )
        if charge.neighbours is not ledger.neighbours:
            raise InputError(
                f"{path} counts under {ledger.neighbours} neighbours, and amounts spent under {charge.neighbours} "
                f"do not add to them: ask with `neighbours={str(ledger.neighbours)!r}`, or choose another `ledger`."
            )
        if charge.person != ledger.person:
            raise InputError(
                f"{path} counts what was spent {protected(ledger.person)}, and amounts spent "
                f"{protected(charge.person)} do not add to it: {_remedy(ledger.person, charge.person)}."
            )
        _check_room(path, charge, cap=ledger.cap, spent=ledger.spent, delta=ledger.delta)


def protected(person: str | None) -> str:
    """Say what a charge protects: single rows, or persons that a column names."""
    return "to protect single rows" if person is None else f"to protect the persons of column {person!r}"


def _remedy(person: str | None, asked: str | None) -> str:
    """Say how a charge can have the unit of a ledger that protects the persons of a column, or rows."""
    if person is not None:
        return f"ask with `person={person!r}`, or choose another `ledger`"
    return f"leave `person` out, and the entry person = {asked!r} of the schema, or choose another `ledger`"


def _check_room(path: Path, charge: Charge, *, cap: Fraction, spent: Fraction, delta: Fraction) -> None:
    if spent + charge.amount > cap:
        raise CheckFailed(
            f"{path}: {charge.unit} {decimal_text(charge.amount)} is more than is left, since {decimal_text(spent)} of "
            f"{decimal_text(cap)} is spent."
        )
    if delta + charge.delta > MAX_DELTA:
        raise CheckFailed(
            f"{path}: delta would add up to {decimal_text(delta + charge.delta)}, and more than "
            f"{decimal_text(MAX_DELTA)} protects nobody."
        )


def _validate_line(says: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The content of a line; None if it is not one that a ledger contains."""
    if says is None:
        return None
    try:
        keys = set(says) - {"mends"}
        optional = _OPTIONAL_KEYS.get(says["event"], set())
        if keys - optional != _KEYS[says["event"]] | _COMMON_KEYS or not all(
            isinstance(says[k], str) for k in keys - {"manifest"}
        ):
            return None
        for name in {"cap", "amount", "delta"} & keys:
            stored_rational(says[name])
        if not isinstance(says.get("manifest", ""), (str, NoneType)):
            return None
        if says["event"] == "open":
            Unit(says["unit"]), Neighbours(says["neighbours"])
    except (KeyError, TypeError, ValueError):
        return None
    return says


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
