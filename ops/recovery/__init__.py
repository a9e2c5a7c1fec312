"""Recovery: who is active, what a failover costs, failing over and back, and consumer groups' positions."""
