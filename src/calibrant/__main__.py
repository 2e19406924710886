"""`python -m calibrant` is the command."""

import sys

from calibrant.cli import main

if __name__ == "__main__":
    sys.exit(main())
