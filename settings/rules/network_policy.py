"""Rules of the peers of a NetworkPolicy, as Kubernetes has them: the operator's policy would be refused otherwise."""

from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network, ip_network

from settings.errors import Problem, Subject
from settings.network_policy import IpBlock, NetworkPolicyPeer
from settings.text import format_names


def network_policy_peer(it: Subject, key: str, peer: NetworkPolicyPeer) -> Iterator[Problem]:
    """Yield what is wrong with a peer of a listener: a range or selectors, not both; an excluded range lies within."""
    selectors = [each for each in (peer.pod_selector, peer.namespace_selector) if each is not None]
    if bool(selectors) == (peer.ip_block is not None):
        yield it.problem(
            key,
            "must have ipBlock, or podSelector, namespaceSelector or both",
            "ipBlock beside a selector" if selectors else "nothing",
            "Make two peers of it." if selectors else "For all pods of all namespaces: namespaceSelector: {}.",
        )
    for requirement in (each for selector in selectors for each in selector.match_expressions):
        if bool(requirement.values) != (requirement.operator in ("In", "NotIn")):
            yield it.problem(
                key,
                f"must have values that fit {requirement.operator} of {requirement.key}",
                format_names(requirement.values) if requirement.values else "none",
                "In and NotIn need values, the others take none.",
            )
    if peer.ip_block is not None:
        yield from _ranges(it, key, peer.ip_block)


def _ranges(it: Subject, key: str, block: IpBlock) -> Iterator[Problem]:
    networks = {cidr: _network(cidr) for cidr in (block.cidr, *block.excluded)}
    for cidr, network in networks.items():
        if network is None:
            yield it.problem(key, "must have a range such as 10.0.0.0/8", cidr, "All bits after the prefix are 0.")
    whole = networks[block.cidr]
    for cidr in block.excluded:
        part = networks[cidr]
        if whole is not None and part is not None and not _is_within(part, whole):
            yield it.problem(key, f"must except only smaller ranges within {whole}", cidr, "Correct one of the two.")


def _network(cidr: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(cidr) if "/" in cidr else None
    except ValueError:
        return None


def _is_within(part: IPv4Network | IPv6Network, whole: IPv4Network | IPv6Network) -> bool:
    if isinstance(part, IPv4Network) and isinstance(whole, IPv4Network):
        return part != whole and part.subnet_of(whole)
    if isinstance(part, IPv6Network) and isinstance(whole, IPv6Network):
        return part != whole and part.subnet_of(whole)
    return False
