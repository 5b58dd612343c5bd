"""What a user calls beside a study, one package or module per command; no command needs another one."""
