"""What a user calls apart from a study, one package or module per command; no command needs another one."""
