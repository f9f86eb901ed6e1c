"""The published release folder: writing it and reading it back. Nothing here reads private rows."""

from certsynth.artefact.certificate import certificate_record
from certsynth.artefact.release import Release
from certsynth.artefact.table import cleaned_table

__all__ = ["Release", "certificate_record", "cleaned_table"]
