"""What follows for decisions: above which score to accept, at which threshold to act, which model to use."""
