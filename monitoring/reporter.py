"""What Strimzi's Metrics Reporter exposes of all that Kafka tells: what the catalogue holds."""

from itertools import groupby

from monitoring.catalog import Part, of_part


def allow_list(part: Part) -> tuple[str, ...]:
    """Return expressions that fit just a part's names in the catalogue, one for each kind of MBean.

    The reporter compares them with names before their type adds a suffix.
    """
    metrics = sorted((each for each in of_part(part) if each.group), key=lambda each: each.name)
    found = []
    for group, members in groupby(metrics, key=lambda each: each.group):
        names = [each.name.removeprefix(f"{group}_").removesuffix("_total") for each in members]
        found.append(f"{group}_({'|'.join(names)})" if len(names) > 1 else f"{group}_{names[0]}")
    return tuple(found)
