"""Kinematic tracking: silhouettes to a motion without physics, which proposes target poses to the fit."""
