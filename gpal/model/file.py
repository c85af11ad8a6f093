"""Model files: arrays and JSON in one .npz, never pickles."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np

from gpal._version import __version__
from gpal.errors import InputError
from gpal.provenance import atomic_path

__all__ = ["load", "save"]

FORMAT = 1


def save(classifier, path) -> None:
    """Write a fitted GPClassifier to `path`; `load` gives the same probabilities."""
    import gpflow

    from gpal.inference.kernels import kernel_to_data

    model = classifier.model_
    likelihood = model.likelihood
    description = {
        "format": FORMAT,
        "gpal": __version__,
        "parameters": classifier._plain_parameters(),
        "settings": classifier.settings_,
        "classes": classifier.classes_.tolist(),
        "classes_dtype": classifier.classes_.dtype.str,
        "feature_names": getattr(classifier, "feature_names_in_", np.array([])).tolist(),
        "X_err_given": classifier.X_err_given_,
        "exact_inputs": bool(classifier.exact_inputs_),
        "bound": classifier.bound_,
        "kernels": [kernel_to_data(kernel) for kernel in model.gp.kernels],
        "likelihood": likelihood.to_data(),
        "input_noise": model.input_noise.to_data(),
        "noisy": list(model.gp.noisy),
        "flat": model.true_input.flat,
    }
    arrays = {
        "alpha": model.posterior.alpha.numpy(),
        "M": model.posterior.M.numpy(),
        "Z": np.asarray(model.gp.Z),
        "offset": classifier.offset_,
        "width": classifier.width_,
        "class_fractions": classifier.class_fractions_,
        "error_scale": model.true_input.scale.numpy(),
        "error_floor": model.true_input.floor.numpy(),
        "population_weights": model.population.weights,
        "population_means": model.population.means,
        "population_covariances": model.population.covariances,
    }
    for name, parameter in gpflow.utilities.parameter_dict(likelihood).items():
        arrays[f"likelihood{name}"] = np.asarray(parameter)
    with atomic_path(path) as temporary, open(temporary, "wb") as stream:
        np.savez_compressed(stream, description=np.array(json.dumps(description)), **arrays)


def load(path):
    """Read a model file; raises InputError where it is missing, damaged or of a newer format."""
    import gpflow
    import tensorflow as tf

    from gpal.classifier import GPClassifier
    from gpal.inference.analytic import AnalyticGP
    from gpal.inference.kernels import kernel_from_data
    from gpal.inference.sparse import SparseGP, SparsePosterior
    from gpal.input_noise.population import Population
    from gpal.input_noise.treatments import input_noise_from_data
    from gpal.input_noise.true_input import TrueInput
    from gpal.likelihoods import likelihood_from_data
    from gpal.model.fitted import FittedModel

    path = Path(path)
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        description = json.loads(str(arrays.pop("description")))
    except FileNotFoundError:
        raise InputError(f"no model file '{path}'") from None
    except (zipfile.BadZipFile, KeyError, ValueError, OSError, EOFError):
        raise InputError(f"'{path}' is not a gpal model file or is damaged; fit it again") from None
    if description["format"] > FORMAT:
        raise InputError(f"'{path}' was written by gpal {description['gpal']}; upgrade gpal")

    parameters = description["parameters"]
    classifier = GPClassifier(**parameters)
    likelihood = likelihood_from_data(description["likelihood"])
    gpflow.utilities.multiple_assign(
        likelihood,
        {
            name.removeprefix("likelihood"): value
            for name, value in arrays.items()
            if name.startswith("likelihood.")
        },
    )
    input_noise = input_noise_from_data(description["input_noise"])
    posterior = SparsePosterior(
        tf.constant(arrays["alpha"]), tf.constant(arrays["M"]), tf.zeros([], tf.float64)
    )
    gp = (AnalyticGP if input_noise.name == "analytic" else SparseGP)(
        [kernel_from_data(data) for data in description["kernels"]],
        arrays["Z"],
        likelihood.latent_dim,
        nodes=input_noise.nodes,
        dtype=tf.as_dtype(parameters["dtype"]),
        noisy=tuple(description["noisy"]),
    )
    population = Population(
        arrays["population_weights"], arrays["population_means"], arrays["population_covariances"]
    )
    true_input = TrueInput(
        population,
        flat=description["flat"],
        scale=arrays["error_scale"],
        floor=arrays["error_floor"],
    )
    classifier.model_ = FittedModel(
        gp, posterior, likelihood, input_noise, true_input, description["bound"], {}
    )
    classifier.settings_ = description["settings"]
    classifier.bound_ = description["bound"]
    classifier.classes_ = np.array(description["classes"], dtype=description["classes_dtype"])
    classifier.class_fractions_ = arrays["class_fractions"]
    classifier.offset_, classifier.width_ = arrays["offset"], arrays["width"]
    classifier.n_features_in_ = len(classifier.offset_) * (2 if classifier.packed else 1)
    if description["feature_names"]:
        classifier.feature_names_in_ = np.array(description["feature_names"], dtype=object)
    classifier.X_err_given_ = description["X_err_given"]
    classifier.exact_inputs_ = description["exact_inputs"]
    return classifier
