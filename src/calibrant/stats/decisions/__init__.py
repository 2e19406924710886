"""Statistics of decisions: errors among the accepted, of rows and of clusters."""
