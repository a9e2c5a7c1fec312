"""The checks: pure functions from facts to a Check. No cluster and no Spark in here."""
