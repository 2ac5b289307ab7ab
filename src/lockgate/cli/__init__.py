"""The command line: each file parses one group of commands, calls, and prints."""
