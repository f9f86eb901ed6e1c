"""What anybody can check about a release, and what nobody can: sentences of `certsynth verify` and of the report."""

from __future__ import annotations

CHECKS = {
    "files": "every file is the one that was published (checksums)",
    "certificate form": "certificate.json has the form of a certificate",
    "schema": "the schema is the one that the certificate speaks of",
    "rows": "the rows hold only values that the schema allows and break none of its rules, the same in both files",
    "measurements": "the noisy counts are there, whole, and of the stated columns",
    "privacy": "the scale of the noise is enough for the {sign} that is stated, {adding}",
    "method": "mechanism, resolution and subsets of columns are the stated ones",
    "plug-in certificate": "the plug-in certificate, recomputed from the noisy counts and the synthetic rows",
    "bound": "the bound is the smaller of its parts, and their failure probabilities fit into one",
    "description": "the description for tools that read tables",
    "report": "this report, byte for byte",
}
"""By the name of the check."""

_ADDING = {"epsilon": "and its parts add up", "rho": "its parts add up, and ρ means that ε and δ"}

CANNOT = (
    "that the noise was drawn as stated, and the seed of the simulated noise not picked",
    "that the real rows were read as the schema says, and are the rows that they are said to be",
    "that the budget was not spent elsewhere as well: other releases from the same rows add theirs",
)
"""Whatever the release."""

CANNOT_DIRECT = "the direct certificate: only the owner of the real rows can compute the distance that it starts from"


def can_verify(unit: str) -> list[str]:
    """`unit`: what the budget is counted in, "epsilon" or "rho"."""
    sign = {"epsilon": "ε", "rho": "ρ"}[unit]
    return [text.format(sign=sign, adding=_ADDING[unit]) for text in CHECKS.values()]


def cannot_verify(*, direct: bool) -> list[str]:
    """`direct`: the release has a direct certificate."""
    return [*CANNOT, *([CANNOT_DIRECT] if direct else [])]
