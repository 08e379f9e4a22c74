"""The `journee` command: one module a subcommand."""
