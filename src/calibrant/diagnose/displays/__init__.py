"""Curves as scikit-learn displays them, with Matplotlib (extra `displays`)."""
