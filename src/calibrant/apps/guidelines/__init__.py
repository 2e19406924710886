"""The items of TRIPOD+AI, answered from a record as far as a record can answer them."""
