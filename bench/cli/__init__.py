"""The command line: one module a command group, arguments and printing only."""
