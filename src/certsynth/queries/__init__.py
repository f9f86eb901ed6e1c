"""The query operator 𝕋: marginals of a table as integer counts."""

from certsynth.queries.marginals import Counts, Marginals

__all__ = ["Counts", "Marginals"]
