"""PCA pose priors: the few coordinates in which the target poses of an activity live (Vondrak 2012, §4.1.2)."""

from mocap2ctrl.prior.choose import load_prior
from mocap2ctrl.prior.pca import IdentityPrior, PosePrior, Prior, train

__all__ = ["IdentityPrior", "PosePrior", "Prior", "load_prior", "train"]
