"""The command line: one thin module a command, which parses, calls and saves."""
