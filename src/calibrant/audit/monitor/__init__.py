"""Monitoring: what is watched of a model's scores day by day, and what may be concluded after every day."""
