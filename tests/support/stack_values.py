"""A good pair of stacks as raw values, and ways to spoil them."""

import copy
from typing import Any

Values = dict[str, Any]

SOURCE: Values = {
    "cluster": {"name": "active", "namespace": "active", "brokers": 1, "expose": {"type": "loadbalancer"}},
    "users": [{"name": "reader", "acls": [{"type": "topic", "names": ["items"], "operations": ["Read"]}]}],
    "topics": [
        {"name": "items", "partitions": 3, "replicas": 1},
        {"name": "store.inventory", "partitions": 1, "replicas": 1},
    ],
}
TARGET: Values = {
    "cluster": {"name": "passive", "namespace": "passive", "brokers": 3, "expose": {"type": "loadbalancer"}},
    "users": [{"name": "writer"}],
    "topics": [{"name": "audit", "partitions": 1, "replicas": 3}],
    "mirrors": [
        {
            "name": "mm2",
            "source": {"stack": "dev", "alias": "es-src", "user": "reader"},
            "target": {"alias": "es-tgt", "user": "writer"},
            "topics": ["items", r"store\.inventory"],
        }
    ],
}


def with_value(values: Values, path: str, value: Any) -> Values:
    """A copy with the value at a dotted path; numbers are positions, `+` adds to a list, None removes the key."""
    result = copy.deepcopy(values)
    *way, last = path.split("/")
    place: Any = result
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
    if last == "+":
        place.append(value)
    elif isinstance(place, list):
        place[int(last)] = value
    elif value is None:
        place.pop(last)
    else:
        place[last] = value
    return result
