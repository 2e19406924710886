"""Looking before computing: what a source holds, column by column, and the audit that it calls for."""
