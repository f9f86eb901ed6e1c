"""The survey tables that benchmarks read, and the bounds of their columns: from the code book, not from the rows."""

from __future__ import annotations

import os
from pathlib import Path

DATA = Path(os.environ.get("CERTSYNTH_DATA", Path(__file__).parents[1] / "../shared/data"))
CALIFORNIA, ALABAMA = DATA / "acs_income_ca2018.parquet", DATA / "acs_income_al2018.parquet"
NEW_YORK = DATA / "acs_travel_ny2024.parquet"

NUMBERS = {"AGEP": (17, 99), "SCHL": (1, 24), "OCCP": (10, 9920), "POBP": (1, 554), "WKHP": (1, 99)}
"""Of the income tables those that the paper reads as numbers."""
LABELS = {"COW": (1, 8), "MAR": (1, 5), "RELP": (0, 17), "SEX": (1, 2), "RAC1P": (1, 9), "PINCP_gt50k": (0, 1)}
"""And the others."""
TRAVEL = {"AGEP": (17, 99), "SCHL": (1, 24), "PUMA": (100, 4503), "POVPIP": (0, 501)}
