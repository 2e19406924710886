"""Applications: what is built on the public interface alone. The core reaches them through `calibrant.plugins`."""
