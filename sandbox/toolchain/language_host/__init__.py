"""`pulumi-language-python`: lets the Pulumi engine run Python programs.

The official host is a Go program that is published as a binary only. This one answers the same calls over the stubs
that the Pulumi SDK ships, so that previews, updates and destroys behave alike. It owns no knowledge of any particular
program. Engines from 3.221 on let it start policy packs too. Earlier engines start those by the launchers out of the
SDK's module, and every engine starts dynamic providers so.
"""
