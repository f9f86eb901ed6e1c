"""The ledger: exact sums, fixed terms, and never more than its cap."""

from __future__ import annotations

import contextlib
import json
import math
import random
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from certsynth import Ledger
from certsynth.algorithm.request import checked_budget
from certsynth.errors import BudgetNote, CheckFailed, InputError
from certsynth.mechanisms import Budget, Neighbours, Sensitivity, Unit
from certsynth.mechanisms import ledger as ledgers
from certsynth.mechanisms.concentrated import Privacy
from certsynth.mechanisms.guarantee import Charge
from certsynth.mechanisms.ledger import Account
from certsynth.mechanisms.protection import Protection
from certsynth.mechanisms.spending import Spending
from small import NoNoise

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE
ONE = Sensitivity(1, 1)


def epsilon(amount: str, delta: str = "0", neighbours: Neighbours = REPLACE) -> Charge:
    return Charge(Fraction(amount), Unit.EPSILON, neighbours, Fraction(delta))


def rho(amount: str) -> Charge:
    return Charge(Fraction(amount), Unit.RHO, REPLACE)


def account(path: Path, cap: str | None = "1", dataset: str | None = "town", table: str = "people") -> Account:
    found = Account.of(path, cap=cap, dataset=dataset, table=table)
    assert found is not None
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def test_adds_up_exactly_to_the_last_grain_and_no_further(path):
    for i in range(10):  # in floats ten times 0.1 is less than 1, and three times 0.1 is more than 0.3
        reservation = account(path).reserve(epsilon("0.1"), what=f"release {i}")
        account(path, cap=None).commit(reservation, "f" * 64)
    ledger = Ledger.load(path)
    assert (ledger.spent, ledger.remaining, ledger.cap) == (1, 0, 1)
    assert [e.what for e in ledger.entries] == [f"release {i}" for i in range(10)]
    assert all(e.finished for e in ledger.entries)
    before = path.read_bytes()
    with pytest.raises(CheckFailed, match=r"epsilon 0\.000000000001 is more than is left, since 1 of 1 is spent\."):
        account(path).reserve(epsilon("1/1000000000000"), what="release")
    assert path.read_bytes() == before


def test_what_was_never_finished_stays_spent(path):
    account(path).reserve(epsilon("1"), what="release")
    with pytest.raises(CheckFailed, match="more than is left"):
        account(path).check(epsilon("0.5"))
    assert not Ledger.load(path).entries[0].finished


def test_checking_writes_nothing(path):
    account(path).check(epsilon("1"))
    assert not path.exists()
    with pytest.raises(CheckFailed, match="is more than is left, since 0 of 1 is spent"):
        account(path).check(epsilon("1.5"))
    assert not path.exists()


REFUSED = [
    ({"cap": "2"}, epsilon("0.1"), "has a cap of 1 since its first use, and it cannot become 2"),
    ({"dataset": "village"}, epsilon("0.1"), "is the ledger of the data set 'town', not of 'village'"),
    (
        {"dataset": None, "table": "trees"},
        epsilon("0.1"),
        "the schema's table is 'trees': if they are the same rows, say `dataset='town'`",
    ),
    ({}, rho("0.1"), "counts in epsilon, to which rho does not add: ask with `epsilon`"),
    ({}, epsilon("0.1", neighbours=ADD), "counts under replace-one neighbours"),
    ({}, epsilon("0.1", "0.01"), "delta would add up to 0.010001"),
]


@pytest.mark.parametrize(("asked", "charge", "message"), REFUSED, ids=lambda x: str(x)[:30])
def test_the_first_use_fixes_the_terms(path, asked, charge, message):
    account(path).reserve(epsilon("0.1", "1e-6"), what="release")
    before = path.read_bytes()
    for act in (lambda a: a.check(charge), lambda a: a.reserve(charge, what="release")):
        with pytest.raises((InputError, CheckFailed), match=message):
            act(account(path, **asked))
    assert path.read_bytes() == before
    account(path, cap=None).reserve(epsilon("0.1", "1e-6"), what="release")
    account(path, cap="1.0").reserve(epsilon("0.1"), what="release")
    ledger = Ledger.load(path)
    assert (ledger.spent, ledger.delta) == (Fraction(3, 10), Fraction(2, 10**6))


def test_a_data_set_that_was_named_once_need_not_be_named_again(path):
    account(path).reserve(epsilon("0.1"), what="release")
    account(path, cap=None, dataset=None).check(epsilon("0.1"))
    account(path, dataset="town", table="the same people, another schema").check(epsilon("0.1"))


def test_a_table_stands_for_a_data_set_without_a_name(path):
    account(path, dataset=None).reserve(epsilon("0.1"), what="release")
    assert Ledger.load(path).dataset == "people"
    account(path, cap=None, dataset=None).check(epsilon("0.1"))
    with pytest.raises(InputError, match="the schema's table is 'trees'"):
        account(path, dataset=None, table="trees").check(epsilon("0.1"))


@pytest.mark.parametrize("cap", [0, -1, "nan", "inf", True, "abc", "1e-13", 101, [1]])
def test_a_cap_is_a_budget(path, cap):
    with pytest.raises(InputError, match="cap"):
        Account.of(path, cap=cap, dataset=None, table="people")


def test_a_new_ledger_needs_a_cap_and_a_cap_a_ledger(path):
    with pytest.raises(InputError, match="is a new ledger: say with `cap`"):
        account(path, cap=None).check(epsilon("0.1"))
    for asked in ({"cap": 1, "dataset": None}, {"cap": None, "dataset": "x"}):
        with pytest.raises(InputError, match="belong to a ledger"):
            Account.of(None, table="people", **asked)
    assert Account.of(None, cap=None, dataset=None, table="people") is None
    for name in ("", "x" * 201, "two\nlines"):
        with pytest.raises(InputError, match="`dataset` must be a name"):
            account(path, dataset=name)


@pytest.mark.parametrize("content", [b"age,sex\n1,f\n", b"{}\n", b'{"event": "open"}', b"\x00" * 50, b"[]\n[]\n"])
def test_another_file_is_left_as_it_is(path, content):
    path.write_bytes(content)
    for act in (lambda: Ledger.load(path), lambda: account(path).reserve(epsilon("1"), what="release")):
        with pytest.raises(InputError, match="is not a ledger of certsynth; it is left as it is"):
            act()
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_ledger(path):
    path.touch()
    with pytest.raises(InputError, match="is empty"):
        Ledger.load(path)
    account(path).reserve(epsilon("0.5"), what="release")
    assert Ledger.load(path).spent == Fraction(1, 2)


def test_every_cut_loses_at_most_what_had_no_noise_yet(path, tmp_path):
    """Whatever a crash leaves of the file: a whole line counts, and going on never exceeds the cap."""
    for amount in ("0.2", "0.3", "0.4"):
        account(path).reserve(epsilon(amount), what="release")
    content, cut = path.read_bytes(), tmp_path / "cut"
    ends = [i for i, byte in enumerate(content) if byte == ord("\n")]
    seen = set()
    for size in range(ends[0], len(content) + 1):
        cut.write_bytes(content[:size])
        whole = sum(end <= size for end in ends[1:])
        spent = sum([Fraction(2, 10), Fraction(3, 10), Fraction(4, 10)][:whole], Fraction(0))
        assert Ledger.load(cut).spent == spent
        for asked in (Fraction(1, 10), Fraction(1, 2)):
            try:
                account(cut).reserve(epsilon(str(asked)), what="release")
            except CheckFailed:
                assert spent + asked > 1
            else:
                spent += asked
        assert Ledger.load(cut).spent == spent <= 1
        seen.add(Ledger.load(cut).cut_off)
    assert seen == {0, 1}
    for size in range(1, ends[0]):  # not even the terms are whole: nothing was charged on them
        cut.write_bytes(content[:size])
        with pytest.raises(InputError, match="is not a ledger"):
            account(cut).reserve(epsilon("0.1"), what="release")


def test_a_line_that_certsynth_does_not_write_is_seen_even_in_a_whole_chain(path):
    account(path).reserve(epsilon("0.5"), what="release")
    content = path.read_bytes()
    forged = [
        {"event": "reserve", "what": "x", "amount": "-1/2", "delta": "0", "time": "", "nonce": ""},  # a refund
        {"event": "reserve", "what": "x", "amount": "0.5", "delta": "0", "time": "", "nonce": ""},
        {"event": "refund", "time": ""},
        {
            "event": "open",
            "format": ledgers.FORMAT,
            "dataset": "x",
            "cap": "9",
            "unit": "rho",
            "neighbours": "add-remove",
        },
        {"event": "commit", "reservation": "x", "manifest": 1, "time": ""},
        {"event": "reserve", "what": "x", "amount": "2", "delta": "0", "time": "", "nonce": ""},  # over the cap
        {"event": ["reserve"], "time": ""},
        {},
    ]
    for says in forged:
        with ledgers.open_chain(path, write=True) as chain:
            chain.append({"time": "", **says} if says else says)
        with pytest.raises(CheckFailed, match="somebody has changed it"):
            Ledger.load(path)
        path.write_bytes(content)
    assert Ledger.load(path).spent == Fraction(1, 2)


def test_a_commit_needs_its_reservation(path):
    reservation = account(path).reserve(epsilon("0.5"), what="release")
    content = path.read_bytes()
    path.write_bytes(content.splitlines(keepends=True)[0])
    with pytest.raises(CheckFailed, match="no longer has what was reserved"):
        account(path).commit(reservation, None)


def test_threads_that_race_are_granted_what_fits(path):
    granted = []

    def charge(i: int) -> None:
        with contextlib.suppress(CheckFailed):
            granted.append(account(path).reserve(epsilon("0.1"), what=f"release {i}"))

    threads = [threading.Thread(target=charge, args=(i,)) for i in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == len(set(granted)) == 10
    assert Ledger.load(path).remaining == 0


def test_random_charges_add_up_like_fractions(path):
    chance = random.Random(5)
    spent = delta = Fraction(0)
    for _ in range(60):
        amount = Fraction(chance.randrange(1, 10**12), chance.choice([10**12, 3 * 10**12, 7 * 10**11])) / 8
        charge = Charge(amount, Unit.EPSILON, REPLACE, Fraction(chance.randrange(10**6), 10**12))
        try:
            account(path, cap="2").reserve(charge, what="release")
        except CheckFailed:
            assert spent + amount > 2
        else:
            spent, delta = spent + amount, delta + charge.delta
    ledger = Ledger.load(path)
    assert (ledger.spent, ledger.delta) == (spent, delta)
    assert math.isclose(ledger.to_json()["spent"], spent)


def test_what_is_asked_in_epsilon_is_charged_in_epsilon(path):
    assert checked_budget(Fraction("0.5")).charge(Protection(REPLACE)) == epsilon("0.5")
    assert checked_budget(Fraction("0.5"), Fraction("1e-6")).charge(Protection(ADD)) == epsilon("0.5", "1e-6", ADD)
    assert checked_budget(None, None, Fraction("0.02")).charge(Protection(REPLACE)) == rho("0.02")
    assert checked_budget(None, Fraction("1e-9"), Fraction("0.02")).charge(Protection(REPLACE)) == rho("0.02")
    assert checked_budget(Fraction("1"), None, Fraction("0.02")).charge(Protection(REPLACE)) == rho("0.02")


# -------------------------------------------------------------------------------------------------- spending


def spending(path: Path | None, noise=None, limit: str = "1") -> Spending:
    return Spending(
        epsilon(limit),
        Budget(Fraction(limit)),
        what="release",
        account=None if path is None else account(path),
        noise=noise,
    )


class Watching(NoNoise):
    """Tells what the ledger says at the moment of each draw."""

    def __init__(self, path: Path) -> None:
        self.path, self.seen = path, []

    def add(self, values, *, sensitivity, budget):
        self.seen.append(Ledger.load(self.path).spent)
        return super().add(values, sensitivity=sensitivity, budget=budget)


def test_all_is_paid_for_before_the_first_draw_and_once(path):
    noise = Watching(path)
    way = spending(path, noise)
    assert not path.exists()
    for _ in range(3):
        way.add(np.zeros(2, dtype=np.int64), sensitivity=ONE, budget=Budget(Fraction(1, 4)))
    assert noise.seen == [1, 1, 1]
    way.commit("a" * 64)
    assert Ledger.load(path).holds("a" * 64)
    assert len(Ledger.load(path).entries) == 1


def test_nothing_is_drawn_beyond_what_was_asked_for(path):
    way = spending(path, NoNoise())
    values = np.zeros(1, dtype=np.int64)
    way.add(values, sensitivity=ONE, budget=Budget(Fraction(3, 4)))
    for budget in (Budget(Fraction(1, 2)), Budget(Fraction(1, 8), Unit.RHO), Budget(Fraction(-1))):
        with pytest.raises(ValueError, match="more is spent than was asked for"):
            way.add(values, sensitivity=ONE, budget=budget)
    way.take(Budget(Fraction(1, 4)))
    with pytest.raises(ValueError, match="more is spent"):
        way.take(Budget(Fraction(1, 10**12)))


def test_nothing_is_drawn_when_the_ledger_refuses(path, monkeypatch):
    account(path).reserve(epsilon("0.5"), what="another")
    with pytest.raises(CheckFailed):
        spending(path)
    drawn: list[object] = []
    monkeypatch.setattr(NoNoise, "add", lambda *a, **k: drawn.append(a))
    way = spending(path, NoNoise(), "0.5")
    account(path).reserve(epsilon("0.1"), what="somebody was faster")
    with pytest.raises(CheckFailed) as caught, way:
        way.add(np.zeros(1, dtype=np.int64), sensitivity=ONE, budget=Budget(Fraction(1, 4)))
    assert drawn == []
    assert caught.value.__notes__ == ["Nothing was spent."]


TOLD = {
    (True, True): "In {path} epsilon 1 stays spent; nothing is refunded.",
    (True, False): "Nothing was spent.",
    (False, True): "Noise had been drawn: count epsilon 1 as spent.",
    (False, False): None,
}


@pytest.mark.parametrize("ledger", [True, False])
@pytest.mark.parametrize("drawn", [True, False])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError, InputError])
def test_an_error_says_what_became_of_the_budget(path, ledger, drawn, error):
    way = spending(path if ledger else None, NoNoise())
    if drawn:
        way.add(np.zeros(1, dtype=np.int64), sensitivity=ONE, budget=Budget(Fraction(1, 4)))
    with pytest.raises(error) as caught, way:
        raise error
    notes = getattr(caught.value, "__notes__", [])
    told = TOLD[ledger, drawn]
    assert notes == ([] if told is None else [told.format(path=path)])
    assert all(isinstance(note, BudgetNote) for note in notes)


def test_an_interrupt_while_reserving_counts_as_spent(path, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    way = spending(path, NoNoise())
    monkeypatch.setattr("certsynth.mechanisms.chain.os.fsync", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught, way:
        way.reserve()
    assert "stays spent" in caught.value.__notes__[0]


def test_the_json_is_what_the_interface_promises(path):
    account(path).reserve(epsilon("1/3", "1e-6"), what="release out")
    told = json.loads(json.dumps(Ledger.load(path).to_json()))
    assert {"cap", "spent", "remaining", "entries"} <= set(told)
    assert told["exact"] == {"cap": "1", "spent": "1/3", "remaining": "2/3", "delta": "1/1000000"}
    assert told["entries"][0]["epsilon"] == 1 / 3
    assert isinstance(Privacy(Budget(Fraction(1)), Fraction(1)).charge(Protection(ADD)), Charge)
