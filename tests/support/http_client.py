"""The HTTP client of the tests: each one that is made reads the machine's authorities, which takes 0.02 s of a core."""

import httpx

HTTP = httpx.Client(trust_env=False)
