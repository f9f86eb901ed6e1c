"""Who takes part, with which settings, and what privacy means for each."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PEERS = Path(__file__).parent / "peers"


@dataclass(frozen=True, slots=True)
class Peer:
    """A package with an environment of its own; certsynth is run where the race is."""

    name: str
    requirements: Path | None
    below: tuple[int, int] | None = None  # of Python


@dataclass(frozen=True, slots=True)
class Contender:
    """One setting of one system. `command` is a second script of which only the time is taken."""

    key: str
    title: str
    peer: str
    runner: Path
    relation: str
    setting: dict[str, Any] = field(default_factory=dict)
    about: str = ""
    default: bool = False
    command: Path | None = None
    is_aim: bool = False


ALL_PEERS = {
    "certsynth": Peer("certsynth", None),
    "dpmm": Peer("dpmm", PEERS / "dpmm.txt", below=(3, 12)),
    "opendp": Peer("opendp", PEERS / "opendp.txt"),
    "smartnoise": Peer("smartnoise", PEERS / "smartnoise.txt"),
}


def ours(key: str, title: str, relation: str, about: str, *, default: bool = True, **options: Any) -> Contender:
    return Contender(
        key,
        title,
        "certsynth",
        PEERS / "certsynth_runner.py",
        relation,
        {"options": options},
        about,
        default,
        PEERS / "certsynth_command.py",
    )


def theirs(peer: str, key: str, title: str, about: str, *, default: bool, is_aim: bool, **setting: Any) -> Contender:
    runner = PEERS / f"{peer}_runner.py"
    return Contender(key, title, peer, runner, "add-remove", setting, about, default, is_aim=is_aim)


CONTENDERS = {
    c.key: c
    for c in (
        ours("certsynth-replace", "certsynth", "replace-one", "all defaults"),
        ours(
            "certsynth-add",
            "certsynth, hidden n",
            "add-remove",
            "all defaults but the neighbour relation, which is the peers'",
            neighbours="add-remove",
        ),
        theirs(
            "dpmm",
            "dpmm-aim",
            "dpmm AIM",
            "defaults: PrivTree bins, no limit on the model's size",
            default=True,
            is_aim=True,
            model="AIM",
        ),
        theirs("dpmm", "dpmm-mst", "dpmm MST", "defaults: PrivTree bins", default=True, is_aim=False, model="MST"),
        theirs(
            "opendp",
            "opendp-aim",
            "OpenDP AIM",
            "defaults of AIM, which leave the bins to the user: 32 to a column",
            default=True,
            is_aim=True,
            bins=32,
        ),
        ours(
            "certsynth-delta",
            "certsynth, hidden n, with δ",
            "add-remove",
            "not the default: Gaussian noise at the peers' δ = 1e-5",
            default=False,
            neighbours="add-remove",
            delta="1e-5",
        ),
        theirs(
            "dpmm",
            "dpmm-aim-reduced",
            "dpmm AIM, reduced",
            "a model of at most 1 MB, which its source offers for trying out",
            default=False,
            is_aim=True,
            model="AIM",
            options={"max_model_size": 1},
        ),
        theirs(
            "dpmm",
            "dpmm-aim-labels",
            "dpmm AIM, by hand",
            "columns of at most 32 values given as labels, since bins and rounding blur them",
            default=False,
            is_aim=True,
            model="AIM",
            **{"labels up to": 32},
        ),
        theirs(
            "dpmm",
            "dpmm-mst-reduced",
            "dpmm MST, reduced",
            "1,000 iterations of the fit in place of 5,000",
            default=False,
            is_aim=False,
            model="MST",
            options={"gen_kwargs": {"n_iters": 1000}},
        ),
        theirs(
            "opendp",
            "opendp-aim-reduced",
            "OpenDP AIM, reduced",
            "16 bins to a column, tables of at most two columns",
            default=False,
            is_aim=True,
            bins=16,
            options={"queries": 2},
        ),
        theirs(
            "opendp",
            "opendp-aim-delta",
            "OpenDP AIM, with δ",
            "the same at ρ = 0.03055, the most that is (1, 1e-5)-private: AIM was made for Gaussian noise",
            default=False,
            is_aim=True,
            bins=32,
            rho=0.03055,
            delta=1e-5,
        ),
        theirs(
            "smartnoise",
            "smartnoise-mst",
            "SmartNoise MST",
            "defaults, and 32 bins to a column in place of 10",
            default=False,
            is_aim=False,
            model="MST",
            bins=32,
        ),
        theirs(
            "smartnoise",
            "smartnoise-aim",
            "SmartNoise AIM",
            "defaults, and 32 bins to a column in place of 10",
            default=False,
            is_aim=True,
            model="AIM",
            bins=32,
        ),
    )
}
