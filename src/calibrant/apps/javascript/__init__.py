"""A calibrator as JavaScript, for a page or a service without Python."""
