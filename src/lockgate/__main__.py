"""`python -m lockgate`."""

from lockgate.cli.app import main

if __name__ == "__main__":
    main()
