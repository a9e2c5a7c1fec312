"""Regular expressions of Java: which names they match, for the settings and for the job.

Imports nothing but the standard library, so that the settings may use it. The policy pack has a reader of its own.
"""
