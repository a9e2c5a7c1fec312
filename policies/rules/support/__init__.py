"""What the rules stand on: reading resources, declaring a rule, exceptions and configuration. No rule of its own."""
