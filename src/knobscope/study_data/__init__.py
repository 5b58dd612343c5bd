"""How a finished study is read: its tables as the report, and the commands about it, need them."""
