"""The audit: counts and digests of records per partition and time, on both sides, for as long as it runs."""
