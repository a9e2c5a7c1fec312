"""What the policy pack finds in a stack's preview, for people, pipelines and code scanning."""
