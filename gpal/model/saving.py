"""Estimators in model files: what `save` writes, and `load` makes of it.

How files are written and read is `file.py`'s affair.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from gpal.errors import InputError, shown
from gpal.files.saved_data import check_arrays, check_fields, check_keys
from gpal.model.training_sample import TrainingSample
from gpal.registry import NotRegistered
from gpal.tensorflow_start import import_tensorflow

__all__ = ["SavedEstimator"]

Estimator = TypeVar("Estimator", bound="SavedEstimator")


class SavedEstimator(BaseEstimator):
    """A subclass with more to keep has it in `to_data`, `from_data` and the two tables."""

    # Its fields, and the arrays beside those of the fitted model.
    saved_fields: ClassVar[dict[str, Any]] = {
        "parameters": dict,
        "feature_names": [str],
        "units": [str],
        "n_features_in": int,
        "X_err_given": bool,
        "exact_inputs": bool,
        "model": dict,
    }
    saved_arrays: ClassVar[dict[str, str]] = {
        "offset": "float d",
        "width": "float d",
        "training_range": "float 2 d",
        "training": "float s d",
    }
    provenance_: Mapping[str, Any] = MappingProxyType({})  # of the file that it was saved to
    # Seen by type checkers: fitted attributes of every subclass.
    model_: Any
    offset_: np.ndarray
    width_: np.ndarray
    units_in_: tuple[str, ...]
    training_: TrainingSample
    n_features_in_: int
    X_err_given_: bool
    exact_inputs_: bool

    def save(self, path: str | os.PathLike, provenance: Mapping[str, Any] | None = None) -> None:
        """Write the fitted model to one .npz: arrays and JSON, nothing pickled.

        Parameters
        ----------
        path : str or path
            The file appears when it is whole.
        provenance : mapping, optional
            Kept beside it, where the caller knows more than the model: catalog, seed, date. It is
            `provenance_` then, as of a model that was loaded, until the next `fit`. None: what
            `provenance_` is now.

        Raises
        ------
        InputError
            Where an argument or the kernel is an object that no file can hold, or the arguments
            were changed to such as could not be fitted.
        """
        from gpal.model.file import read_provenance, write_model

        check_is_fitted(self)
        classes = len(self.classes_) if hasattr(self, "classes_") else None
        self.check_settings(classes, len(self.offset_))
        if provenance is None and self.provenance_:
            provenance = {k: v for k, v in self.provenance_.items() if k != "model_sha256"}
        write_model(path, type(self).__name__, *self.to_data(), provenance)
        self.provenance_ = read_provenance(path)

    @classmethod
    def load(cls: type[Estimator], path: str | os.PathLike) -> Estimator:
        """The model that `save` wrote: it predicts the same, and can be cloned and fitted.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        estimator
            Its `provenance_` is what was given to `save` as such, and the checksum of the file.
        """
        import_tensorflow()
        from gpal.inference.device import UnsuitableDevice
        from gpal.model.file import read_model, read_provenance

        data, arrays = read_model(path, cls.__name__)
        try:
            estimator = cls.from_data(data, arrays)
        except (MemoryError, UnsuitableDevice):
            raise
        except NotRegistered as error:
            raise InputError(
                f"cannot read '{path}': {shown(error, 300)}; install the package that the model was"
                " fitted with, or run what registers it first"
            ) from error
        except Exception as error:  # TensorFlow and GPflow raise what they like on a bad value
            what = f"{'' if isinstance(error, InputError) else type(error).__name__ + ': '}{error}"
            raise InputError(
                f"'{path}' is damaged: {shown(what, 300)}; fit the model again"
            ) from error
        estimator.provenance_ = read_provenance(path)
        return estimator

    def to_data(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """What `from_data` makes the estimator from again.

        Returns
        -------
        data : dict
            JSON-able.
        arrays : dict of str to array
        """
        from gpal.model.parameters import parameters_to_data

        model, arrays = self.model_.to_data()
        data = {
            "parameters": parameters_to_data(
                self.get_params(deep=False), of_classes=is_classifier(self)
            ),
            "feature_names": getattr(self, "feature_names_in_", np.array([])).tolist(),
            "units": list(self.units_in_),
            "n_features_in": self.n_features_in_,
            "X_err_given": self.X_err_given_,
            "exact_inputs": bool(self.exact_inputs_),
            "model": model,
        }
        own = {"offset": self.offset_, "width": self.width_, **self.training_.to_arrays()}
        return data, {**arrays, **own}

    @classmethod
    def from_data(
        cls: type[Estimator], data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> Estimator:
        """Inverse of `to_data`.

        Parameters
        ----------
        data : mapping
            As `to_data` makes it.
        arrays : mapping of str to array
            Likewise.

        Returns
        -------
        estimator

        Raises
        ------
        InputError
            For data or arrays that are not as `to_data` makes them.
        """
        from gpal.model.fitted import FittedModel
        from gpal.model.parameters import parameters_from_data

        check_fields(data, cls.saved_fields, "the file")
        d, columns = len(data["units"]), data["n_features_in"]
        own = {name: arrays[name] for name in cls.saved_arrays if name in arrays}
        check_arrays(own, cls.saved_arrays, {"d": d}, may_be_nan=("training", "training_range"))
        if not (own["width"] > 0).all():
            raise InputError("the array 'width' holds a value that is not above 0")
        check_keys(data["parameters"], cls._get_param_names(), "the list of parameters")
        estimator = cls(**parameters_from_data(data["parameters"], d))
        possible = (d, 2 * d) if estimator.packed else (d,)
        if columns not in possible or len(set(data["feature_names"])) not in (0, columns):
            raise InputError(f"'feature_names' or 'units' are not those of {columns} columns")
        estimator.offset_, estimator.width_ = own["offset"], own["width"]
        estimator.training_ = TrainingSample.from_arrays(own["training_range"], own["training"])
        estimator.n_features_in_ = columns
        if data["feature_names"]:
            estimator.feature_names_in_ = np.array(data["feature_names"], dtype=object)
        estimator.units_in_ = tuple(data["units"])
        estimator.X_err_given_ = data["X_err_given"]
        estimator.exact_inputs_ = data["exact_inputs"]
        rest = {name: array for name, array in arrays.items() if name not in own}
        estimator.model_ = FittedModel.from_data(data["model"], rest)
        if estimator.model_.population.means.shape[1] != d:
            raise InputError(f"the model is not one of {d} features")
        estimator._describe()
        return estimator
