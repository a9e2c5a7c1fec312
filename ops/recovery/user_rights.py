"""Rights of a stack's KafkaUsers, changed at once: as Pulumi's next `up` declares them, without running Pulumi.

Owns which rules of a KafkaUser change, and the wait for its operator. Does not own what is denied or how a rule is
written (`settings/fence.py`), nor the patch itself (`kubernetes_access.py`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kubernetes import client

from contract.verification_request import Resource
from ops.recovery import kubernetes_access
from ops.recovery.kubernetes_access import CALL_WITHIN_S, kubernetes, wait_until_ready
from settings import fence
from settings.stack import Stack
from settings.users import User

WITHIN_S = 120.0
_KIND, _PLURAL = "KafkaUser", "kafkausers"
Rule = dict[str, Any]
Log = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class UserRights:
    """The KafkaUsers of a stack, by a context of the kubeconfig.

    `require_permission` is called before each change and raises to forbid it. A call to the API server may take
    `call_within_s` seconds; it is made again for `tried_within_s` seconds if it gets no answer.
    """

    context: str | None
    environment: Mapping[str, str] = field(repr=False)
    log: Log
    require_permission: Callable[[], None] = lambda: None
    call_within_s: int = CALL_WITHIN_S
    tried_within_s: float | None = None

    def change(
        self, before: Stack, after: Stack, users: Iterable[User] | None = None, within_s: float = WITHIN_S
    ) -> list[str]:
        """Give users the rights that they have by `after`; return those whose rights differ from `before`.

        Where a KafkaUser is not as it is declared, only what differs between both is changed. It is waited until the
        operator has carried it out, for so long. A KafkaUser that is not there is left out. Raises OpsError.
        """
        names = None if users is None else {user.name for user in users}
        asked = {user.name: (_rules(user, before), _rules(user, after)) for user in after.users}
        wanted = {
            name: rules for name, rules in asked.items() if rules[0] != rules[1] and (names is None or name in names)
        }
        with kubernetes(self.environment, self.context, self.tried_within_s) as api:
            live = self._live(api, after) if wanted else {}
            changed = [name for name in wanted if name in live]
            for name in changed:
                place = after.platform.api, _KIND, after.cluster.namespace, name
                kubernetes_access.change_spec(api, *place, partial(self._authorized, *wanted[name]))
        for name in changed:
            wait_until_ready(self._resource(after, name), self.environment, self.log, within_s)
        return changed

    def _authorized(self, before: list[Rule], after: list[Rule], user: Mapping[str, Any]) -> dict[str, Any] | None:
        """The authorization that a KafkaUser gets, None if it has it; also another command may have changed it."""
        rules = merged(_granted(user), before, after)
        if rules == _granted(user):
            return None
        self.require_permission()
        return {"authorization": {"type": "simple", "acls": rules} if rules else None}

    def missing(self, before: Stack, after: Stack) -> dict[str, list[Rule]]:
        """Return the rules that users do not have although `after` declares them and `before` does not.

        Each user that has such a rule, and a KafkaUser, is named, also with an empty list. What its operator has not
        carried out, a user does not have. Raises OpsError.
        """
        with kubernetes(self.environment, self.context, self.tried_within_s) as api:
            live = self._live(api, after)
        found = {}
        for user in after.users:
            known = _rules(user, before)
            added = [rule for rule in _rules(user, after) if rule not in known]
            if added and user.name in live:
                granted = _granted(live[user.name]) if _is_carried_out(live[user.name]) else []
                found[user.name] = [rule for rule in added if rule not in granted]
        return found

    def _live(self, api: client.ApiClient, of: Stack) -> dict[str, kubernetes_access.Object]:
        group, _, version = of.platform.api.rpartition("/")
        found = client.CustomObjectsApi(api).list_namespaced_custom_object(
            group, version, of.cluster.namespace, _PLURAL, _request_timeout=self.call_within_s
        )
        return {each["metadata"]["name"]: each for each in found["items"]}

    def _resource(self, of: Stack, name: str) -> Resource:
        return Resource(
            api_version=of.platform.api, kind=_KIND, namespace=of.cluster.namespace, name=name, context=self.context
        )


def merged(live: list[Rule], before: list[Rule], after: list[Rule]) -> list[Rule]:
    """Return rules that are there, changed by what differs between two declarations of them."""
    if live in (before, after):
        return after
    removed, added = [rule for rule in before if rule not in after], [rule for rule in after if rule not in before]
    kept = [rule for rule in live if rule not in removed]
    return [*kept, *(rule for rule in added if rule not in kept)]


def _granted(user: Mapping[str, Any]) -> list[Rule]:
    """The rules of a KafkaUser as it is there."""
    return ((user.get("spec") or {}).get("authorization") or {}).get("acls") or []


def _is_carried_out(user: Mapping[str, Any]) -> bool:
    status = user.get("status") or {}
    conditions = status.get("conditions") or []
    is_ready = any(one.get("type") == "Ready" and str(one.get("status")) == "True" for one in conditions)
    return is_ready and status.get("observedGeneration") == user["metadata"].get("generation", 1)


def _rules(user: User, settings: Stack) -> list[Rule]:
    found: list[Rule] = (fence.authorization_of(user, settings) or {}).get("acls") or []
    return found
