"""`pulumi-language-python`: lets the Pulumi engine run Python programs and policy packs.

The official host is a Go program that is published as a binary only. This one answers the same calls over the stubs
that the Pulumi SDK ships: previews, updates, destroys, policy packs and dynamic providers behave alike. It owns no
knowledge of any particular program.
"""
