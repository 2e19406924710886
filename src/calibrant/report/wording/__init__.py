"""The English of a report: words for one thing each, and the sentences that judge; nothing else in the library does."""
