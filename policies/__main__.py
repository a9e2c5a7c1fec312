"""The policy pack: `pulumi preview --policy-pack policies`."""

from pulumi_policy import PolicyPack
from rules import POLICIES

PolicyPack("rt-inventory", policies=[*POLICIES])
