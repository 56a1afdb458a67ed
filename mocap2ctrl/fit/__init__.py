"""Fits controllers: CMA-ES, batch and incremental optimisation, captures."""
