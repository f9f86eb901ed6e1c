"""Makes `report_specimens` importable whatever import mode pytest is told to use."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
