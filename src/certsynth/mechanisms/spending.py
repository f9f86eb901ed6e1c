"""Spending a budget: noise is paid for before it is drawn, and never exceeds the limit."""

from __future__ import annotations

import sys
from types import TracebackType

from certsynth.base.arrays import Ints
from certsynth.errors import BudgetNote, CertsynthError
from certsynth.mechanisms.guarantee import Budget, Charge, Sensitivity
from certsynth.mechanisms.ledger import Account
from certsynth.mechanisms.rare import Tail
from certsynth.mechanisms.samplers import ExactNoise, Noise, NoisyIntegers

NOTHING_SPENT = "Nothing was spent."


class Spending:
    """The budget of one release or certificate, and what has been spent of it.

    The whole budget is reserved in the ledger, if there is one, before the first draw, and stays spent whatever happens
    then; amounts beyond `limit` are refused. An error that leaves the `with` block has a note on the budget.
    """

    def __init__(
        self, charge: Charge, limit: Budget, *, what: str, account: Account | None, noise: Noise | None = None
    ) -> None:
        self.charge, self.limit, self.what, self.account = charge, limit, what, account
        self._noise = noise or ExactNoise()
        self._left = limit.amount
        self._drawn = False
        self.reservation: str | None = None
        """Hash of the ledger's line that reserves the budget."""
        if account is not None:
            account.check(charge)

    @property
    def releasable(self) -> bool:
        return self._noise.releasable

    def add(self, values: Ints, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        """Add noise as `Noise.add` does, after paying for it."""
        self.take(budget)
        sys.audit("certsynth.noise.draw")
        return self._noise.add(values, sensitivity=sensitivity, budget=budget)

    def rare(self, cells: int, tail: Tail) -> tuple[Ints, Ints]:
        """Large noise of further cells of a vector that `add` has paid for."""
        if not self._drawn:
            raise ValueError("no noise was paid for")
        return self._noise.rare(cells, tail)

    def take(self, budget: Budget) -> None:
        """Spend a part of the budget. Call this before anything random is drawn for it."""
        if budget.unit is not self.limit.unit or not 0 <= budget.amount <= self._left:
            raise ValueError("more is spent than was asked for")
        self.reserve()
        self._left -= budget.amount

    def reserve(self) -> None:
        """Reserve the whole budget in the ledger, once."""
        if self._drawn:
            return
        self._drawn = True  # counts as spent from here on, even if the next line is interrupted
        if self.account is not None:
            try:
                self.reservation = self.account.reserve(self.charge, what=self.what)
            except CertsynthError:
                self._drawn = False  # refused, or the ledger could not be written: it has no entry
                raise

    def commit(self, manifest: str | None) -> None:
        """Record in the ledger that the result is written; `manifest` is its hash."""
        if self.account is not None and self.reservation is not None:
            self.account.commit(self.reservation, manifest)

    def __enter__(self) -> Spending:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and (self._drawn or self.account is not None):
            error.add_note(BudgetNote(self._budget_note()))

    def _budget_note(self) -> str:
        if not self._drawn:
            return NOTHING_SPENT
        if self.account is None:
            return f"Noise had been drawn: count {self.charge} as spent."
        return f"In {self.account.path} {self.charge} stays spent; nothing is refunded."
