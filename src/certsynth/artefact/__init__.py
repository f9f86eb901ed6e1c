"""What is published: the release folder, how it is written, and how it is read. No private row is read here."""

from certsynth.artefact.certificate import certificate_record
from certsynth.artefact.release import Release
from certsynth.artefact.table import cleaned_table

__all__ = ["Release", "certificate_record", "cleaned_table"]
