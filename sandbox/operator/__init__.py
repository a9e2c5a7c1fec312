"""The operators' stand-in: reconciles Strimzi's and OLM's custom resources with real Kafka processes on this machine.

What stands in is only the controller. The resources it reads, the Secrets and status it writes and the processes it
runs have the shapes and names that Strimzi 1.2 and OLM use.
"""
