"""`python -m mocap2ctrl`."""

import sys

from mocap2ctrl.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
