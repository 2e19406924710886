"""Runs the command as `python -m calibrant.cli`."""

import sys

from calibrant.cli.run import main

if __name__ == "__main__":
    sys.exit(main())
