"""The verification of mirrors: the request, the job as a process or as pods, and its result in `pulumi up`."""
