"""Statistics of a rating scale: defaults that move together, migrations between grades, concentration in them."""
