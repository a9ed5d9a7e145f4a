"""Run the command line: ``python -m boxscore``."""

import sys

from boxscore.cli import main

if __name__ == "__main__":
    sys.exit(main())
