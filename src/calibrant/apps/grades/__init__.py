"""The validation of default probabilities by grade, as banking supervisors ask for it: its figures, its making."""
