"""GPyTorch's classifiers, as its documentation trains them; in float32, its default."""

from __future__ import annotations

import numpy as np
from scoring import (
    BATCH,
    INDUCING,
    LEARNING_RATE,
    STEPS,
    SUBSET,
    FixedPoints,
    Recorder,
    Split,
    log_softmax,
)


def gpytorch_svgp(split: Split, seed: int):
    """SVGP with one kernel, its inducing points learned from k-means centres, trained as GPflow's.

    Softmax likelihood by sampling; for two classes GPyTorch's Bernoulli likelihood, a probit.
    """
    import gpytorch
    import torch

    from gpal.model.gaussian_process import inducing_points

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    recorder = Recorder(split)
    C, (n, d) = split.num_classes, split.X.shape
    binary, X = C == 2, torch.tensor(split.X, dtype=torch.float32)
    X_test = torch.tensor(split.X_test, dtype=torch.float32)
    y = torch.tensor(split.y, dtype=torch.float32 if binary else torch.long)
    Z = torch.tensor(inducing_points(split.X, INDUCING, seed), dtype=torch.float32)
    batch = torch.Size([] if binary else [C])
    variational = gpytorch.variational

    class Model(gpytorch.models.ApproximateGP):
        def __init__(self):
            q = variational.CholeskyVariationalDistribution(INDUCING, batch_shape=batch)
            strategy = variational.VariationalStrategy(self, Z, q, learn_inducing_locations=True)
            if not binary:
                strategy = variational.IndependentMultitaskVariationalStrategy(strategy, C)
            super().__init__(strategy)
            self.mean = gpytorch.means.ConstantMean(batch_shape=batch)
            rbf = gpytorch.kernels.RBFKernel(ard_num_dims=d)
            self.kernel = gpytorch.kernels.ScaleKernel(rbf)

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    model = Model()
    if binary:
        likelihood = gpytorch.likelihoods.BernoulliLikelihood()
    else:
        likelihood = gpytorch.likelihoods.SoftmaxLikelihood(num_classes=C, mixing_weights=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    objective = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=n)
    fixed, rng = FixedPoints(log_softmax, C), np.random.default_rng(seed)

    def probabilities():
        model.eval()
        with torch.no_grad():
            q = model(X_test)
            if binary:
                p = likelihood(q).probs.double().numpy()
                return np.stack([1.0 - p, p], axis=1)
            return fixed.probabilities(q.mean.double().numpy(), q.variance.double().numpy())

    rows = np.zeros(0, int)
    for step in range(1, STEPS + 1):
        if len(rows) < BATCH:
            rows = np.concatenate([rows, rng.permutation(n)])
        own, rows = torch.as_tensor(rows[:BATCH]), rows[BATCH:]
        model.train()
        optimizer.zero_grad()
        loss = -objective(model(X[own]), y[own])
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            recorder.record(probabilities)
    return recorder.trajectory


def gpytorch_dirichlet(split: Split, seed: int):
    """Exact Dirichlet GP of GPyTorch's own example on 2,000 training rows: 50 steps of Adam .1."""
    import gpytorch
    import torch

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    recorder = Recorder(split.subset(SUBSET, seed))
    X = torch.tensor(recorder.split.X, dtype=torch.float32)
    X_test = torch.tensor(split.X_test, dtype=torch.float32)
    likelihood = gpytorch.likelihoods.DirichletClassificationLikelihood(
        torch.tensor(recorder.split.y), learn_additional_noise=True
    )
    batch = torch.Size((likelihood.num_classes,))

    class Model(gpytorch.models.ExactGP):
        def __init__(self):
            super().__init__(X, likelihood.transformed_targets, likelihood)
            self.mean = gpytorch.means.ConstantMean(batch_shape=batch)
            rbf = gpytorch.kernels.RBFKernel(batch_shape=batch, ard_num_dims=X.shape[1])
            self.kernel = gpytorch.kernels.ScaleKernel(rbf, batch_shape=batch)

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))

    model = Model().train()
    likelihood.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    objective = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    fixed = FixedPoints(log_softmax, likelihood.num_classes)

    def probabilities():
        model.eval()
        with torch.no_grad(), gpytorch.settings.fast_pred_var():
            q = model(X_test)
            return fixed.probabilities(q.mean.T.double().numpy(), q.variance.T.double().numpy())

    for _ in range(50):
        optimizer.zero_grad()
        loss = -objective(model(X), likelihood.transformed_targets).sum()
        loss.backward()
        optimizer.step()
    recorder.record(probabilities)
    return recorder.trajectory
