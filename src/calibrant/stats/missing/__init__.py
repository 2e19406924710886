"""Outcomes that nobody saw: people without a label (`unlabelled`), and follow-up that ends (`survival`)."""
