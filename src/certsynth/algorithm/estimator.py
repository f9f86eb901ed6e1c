"""A release as a scikit-learn estimator: `fit` spends the budget once, `sample` returns rows. No data are kept."""

from __future__ import annotations

from typing import Any, Unpack

from certsynth.algorithm.declaration import declared, takes
from certsynth.algorithm.options import EstimatorOptions, FitOptions
from certsynth.algorithm.release import read_public
from certsynth.algorithm.release import release as make_release
from certsynth.algorithm.sample import Sample
from certsynth.algorithm.sample import sample as more_rows
from certsynth.artefact import Release
from certsynth.artefact.frames import FrameKind, to_frame
from certsynth.artefact.release import Certificate
from certsynth.base.html import block, paragraph
from certsynth.domain import Schema
from certsynth.errors import BudgetNote, InputError
from certsynth.mechanisms.spending import NOTHING_SPENT

_DEFAULTS = {name: each.option.default for name, each in declared(EstimatorOptions).items()}
_PARAMETERS = ("schema", *_DEFAULTS)


class CertifiedSynthesizer:
    """The options are those of `release`, stored as given and checked by `fit`.

    After `fit`, `release_` and `certificate_` are set, and `times_spent_` counts how often the budget was spent,
    including failed fits. A second `fit` spends the budget again, so it requires `refit=True`.
    """

    schema: Schema

    @takes(EstimatorOptions, check=False)
    def __init__(self, schema: Schema, **options: Unpack[EstimatorOptions]) -> None:
        """Store the options."""
        vars(self).update(options, schema=schema)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The options as given. `deep` exists for scikit-learn; no option is an estimator."""
        return {name: getattr(self, name) for name in _PARAMETERS}

    def set_params(self, **params: Any) -> CertifiedSynthesizer:
        """Change options for the next `fit`; the fitted release is unaffected."""
        for name in params:
            if name not in _PARAMETERS:
                raise InputError(f"{name!r:.60} is not an option: choose from {', '.join(_PARAMETERS)}.")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    @takes(FitOptions)
    def fit(self, data: Any, **call: Unpack[FitOptions]) -> CertifiedSynthesizer:
        """Make the release: spend the budget on `data`, and charge it to the ledger if there is one.

        Args:
            data: The private table, in any form that `release` takes.
        """
        refit = call.pop("refit")
        if not refit and self._times:
            happened = (
                "is already fitted" if self.__sklearn_is_fitted__() else "has spent its budget in a fit that failed"
            )
            raise InputError(
                f"this synthesizer {happened}, and another fit would spend the budget again: the costs on the same "
                "rows add up. Use sample(), or call fit(data, refit=True)."
            )
        options = self.get_params()
        try:
            made = make_release(data, options.pop("schema"), noise=call["noise"], progress=call["progress"], **options)
        except BaseException as error:
            notes = [note for note in getattr(error, "__notes__", ()) if isinstance(note, BudgetNote)]
            if any(note != NOTHING_SPENT for note in notes):
                self.times_spent_ = self._times + 1
            raise
        self.times_spent_ = self._times + 1
        self.release_: Release = made
        self.certificate_: Certificate = made.certificate
        return self

    def sample(self, n: int | None = None, *, seed: int | None = None, frame: FrameKind | None = None) -> Any:
        """Return the certified rows as a frame, or `n` new rows as a `Sample` with certificates of their own.

        `frame` is pandas, polars, arrow or dict (of masked arrays); by default pandas if it is installed, else dict.
        New rows are sampled from the noisy counts of the release and cost no budget, whatever their number.
        """
        release = self._fitted()
        if n is None:
            if seed is not None:
                raise InputError("the certified rows are fixed; seed applies to new rows only. Give their number n.")
            return to_frame(frame, release.schema, release.table, release.rows)
        given = self.get_params()["public"]
        public = None if given is None else read_public(given, release.schema)
        return more_rows(release, n, seed=seed, frame=frame, public=public)

    @property
    def _times(self) -> int:
        return int(getattr(self, "times_spent_", 0))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "release_")

    def __sklearn_tags__(self) -> Any:
        """Tags that scikit-learn requires of estimators. Only scikit-learn calls this, so it can be imported here."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def _fitted(self) -> Release:
        if not self.__sklearn_is_fitted__():
            raise InputError("there are no rows yet: first call fit(data), which spends the budget.")
        return self.release_

    def __repr__(self) -> str:
        given = {name: value for name, value in self.get_params().items() if value != _DEFAULTS.get(name)}
        given.pop("schema"), given.pop("public", None)
        options = "".join(f", {name}={value!r:.40}" for name, value in given.items())
        spent = f", budget spent {self._times} time{'s' * (self._times > 1)}" if self._times else ""
        return f"CertifiedSynthesizer({self.schema!r}{options}{spent})"

    def _repr_html_(self) -> str:
        if self.__sklearn_is_fitted__():
            often = f"The budget was spent {self._times} times: the costs of several fits on the same rows add up."
            return block(self.release_._repr_html_(), paragraph(often) if self._times > 1 else "")
        return block(paragraph(repr(self)), paragraph("Not fitted: nothing is spent, and there are no rows yet."))


__all__ = ["CertifiedSynthesizer", "Sample"]
