"""`python -m gpal` is the command `gpal`."""

from gpal.cli import main

if __name__ == "__main__":
    main()
