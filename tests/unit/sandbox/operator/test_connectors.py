from pathlib import Path
from typing import Any

from sandbox.operator import connectors
from sandbox.operator.connect import worker_properties
from sandbox.operator.connectors import connector_problem, has_failed, refusal

SECRETS = Path("/state/secrets")


def side(alias: str, port: int) -> dict[str, Any]:
    return {
        "alias": alias,
        "bootstrapServers": f"127.0.0.1:{port}",
        "tls": {"trustedCertificates": [{"secretName": f"{alias}-ca", "certificate": "ca.crt"}]},
        "authentication": {
            "type": "scram-sha-512",
            "username": f"{alias}-user",
            "passwordSecret": {"secretName": f"{alias}-secret", "password": "password"},
        },
    }


def spec() -> dict[str, Any]:
    target = {
        **side("tgt", 2),
        "groupId": "g",
        "configStorageTopic": "c",
        "offsetStorageTopic": "o",
        "statusStorageTopic": "s",
        "config": {"offset.flush.interval.ms": 5000, "group.id": "ignored", "ssl.keystore.location": "/ignored"},
    }
    mirror = {
        "source": side("src", 1),
        "topicsPattern": "items",
        "groupsPattern": ".*",
        "sourceConnector": {"tasksMax": 2, "config": {"replication.factor": 3, "sync.topic.acls.enabled": False}},
        "checkpointConnector": {"autoRestart": {"enabled": True, "maxRestarts": 4}, "state": "paused"},
    }
    return {"replicas": 1, "target": target, "mirrors": [mirror]}


def status(state: str = "RUNNING", tasks: tuple[str, ...] = (), trace: str = "") -> dict[str, Any]:
    return {
        "connector": {"state": state},
        "tasks": [{"id": number, "state": task, "trace": trace} for number, task in enumerate(tasks)],
    }


def line(port: int, cause: str = "Authentication failed during authentication due to invalid credentials") -> str:
    client = "[AdminClient clientId=src->tgt|src->tgt.MirrorSourceConnector|replication-source-admin]"
    where = f"Connection to node -1 (localhost/127.0.0.1:{port})"
    return (
        f"[t] ERROR {client} {where} failed authentication due to: {cause} (org.apache.kafka.clients.NetworkClient:1)"
    )


def test_connectors_are_named_by_both_aliases_and_their_class() -> None:
    names = [entry.name for entry in connectors.definitions("mm2", spec(), SECRETS)]
    assert names == ["src->tgt.MirrorSourceConnector", "src->tgt.MirrorCheckpointConnector"]


def test_a_connectors_configuration_is_strimzis() -> None:
    config = connectors.definitions("mm2", spec(), SECRETS)[0].config
    assert config["connector.class"] == "org.apache.kafka.connect.mirror.MirrorSourceConnector"
    assert (config["tasks.max"], config["topics"], config["groups"]) == ("2", "items", ".*")
    assert config["source.cluster.alias"] == "src"
    assert config["target.cluster.security.protocol"] == "SASL_SSL"
    assert config["target.cluster.offset.flush.interval.ms"] == "5000"
    assert (config["replication.factor"], config["sync.topic.acls.enabled"]) == ("3", "false")


def test_secrets_are_references_into_the_folder_that_the_provider_may_read() -> None:
    config = connectors.definitions("mm2", spec(), SECRETS)[0].config
    assert 'password="${directory:/state/secrets/src-secret:password}"' in config["source.cluster.sasl.jaas.config"]
    assert config["source.cluster.ssl.truststore.certificates"].endswith("-trusted-certs:src.crt}")
    worker = worker_properties("mm2", spec(), SECRETS, 1234)
    assert worker["config.providers.directory.param.allowed.paths"] == "/state/secrets"


def test_state_and_restarts_are_what_the_resource_says() -> None:
    source, checkpoint = connectors.definitions("mm2", spec(), SECRETS)
    assert (source.state, source.auto_restart) == ("running", False)
    assert (checkpoint.state, checkpoint.auto_restart, checkpoint.max_restarts) == ("paused", True, 4)


def test_a_worker_keeps_what_the_operator_manages() -> None:
    worker = worker_properties("mm2", spec(), SECRETS, 1234)
    assert (worker["group.id"], worker["listeners"]) == ("g", "http://127.0.0.1:1234")
    assert worker["offset.flush.interval.ms"] == "5000"
    assert "ssl.keystore.location" not in worker


def test_a_worker_leaves_the_tasks_of_a_crashed_one_as_long_as_the_resource_says_and_else_as_kafka_does() -> None:
    delay = "scheduled.rebalance.max.delay.ms"
    assert delay not in worker_properties("mm2", spec(), SECRETS, 1234)
    with_a_delay = spec()
    with_a_delay["target"]["config"] = {delay: 30_000}
    assert worker_properties("mm2", with_a_delay, SECRETS, 1234)[delay] == "30000"


def test_a_refused_user_is_named_by_the_side_whose_address_stands_in_the_log() -> None:
    problem = refusal("mm2", spec()["target"], line(2))
    assert problem
    assert problem[0] == "AuthenticationFailed"
    assert all(word in problem[1] for word in ("tgt-user", "tgt", "tgt-secret"))
    assert refusal("mm2", spec()["target"], line(1)) is None


def test_a_certificate_that_is_not_trusted_has_its_own_reason() -> None:
    problem = refusal("mm2", spec()["target"], line(2, "SSL handshake failed"))
    assert problem
    assert problem[0] == "TlsFailed"
    assert "tgt-ca" in problem[1]


def test_a_connector_without_tasks_and_one_with_a_failed_task_are_no_problem_of_the_mirror() -> None:
    """As Strimzi judges: a source that refuses its user leaves the connector RUNNING without a task, and Ready."""
    source = connectors.definitions("mm2", spec(), SECRETS)[0]
    assert connector_problem("mm2", source, status()) is None
    assert connector_problem("mm2", source, status(tasks=("RUNNING", "FAILED"), trace="org.Boom: no room")) is None
    problem = connector_problem("mm2", source, None)
    assert problem
    assert problem[0] == "ConnectorStarting"


def test_a_failed_connector_is_reported_with_the_first_line_of_its_trace() -> None:
    source = connectors.definitions("mm2", spec(), SECRETS)[0]
    found = status(tasks=())
    found["connector"] = {"state": "FAILED", "trace": "org.Boom: no room\n\tat x"}
    problem = connector_problem("mm2", source, found)
    assert problem
    assert problem[0] == "ConnectorFailed"
    assert "connector FAILED: org.Boom: no room." in problem[1]


def test_what_failed_is_restarted_where_the_resource_asks_for_it() -> None:
    assert has_failed(status(tasks=("RUNNING", "FAILED")))
    assert has_failed({"connector": {"state": "FAILED"}, "tasks": []})
    assert not has_failed(status(tasks=("RUNNING",)))
    assert not has_failed(None)


def connection(**changes: Any) -> dict[str, str]:
    cluster = {key: value for key, value in (side("src", 1) | changes).items() if value is not None}
    return connectors.client_config("mm2", cluster, SECRETS)


def test_a_certificate_is_shown_from_the_keys_that_the_resource_names() -> None:
    pair = {"secretName": "mine", "certificate": "tls.crt", "key": "tls.key"}
    config = connection(authentication={"type": "tls", "certificateAndKey": pair})
    assert config["security.protocol"] == "SSL"
    assert config["ssl.keystore.certificate.chain"] == "${directory:/state/secrets/mine:tls.crt}"
    assert config["ssl.keystore.key"] == "${directory:/state/secrets/mine:tls.key}"
    assert not [key for key in config if key.startswith("sasl")]


def test_every_password_mechanism_has_its_name_and_module() -> None:
    source = {"username": "token", "passwordSecret": {"secretName": "api", "password": "key"}}
    expected = {
        "scram-sha-512": ("SCRAM-SHA-512", "scram.ScramLoginModule"),
        "scram-sha-256": ("SCRAM-SHA-256", "scram.ScramLoginModule"),
        "plain": ("PLAIN", "plain.PlainLoginModule"),
    }
    for kind, (mechanism, module) in expected.items():
        config = connection(authentication={"type": kind, **source})
        assert (config["sasl.mechanism"], config["security.protocol"]) == (mechanism, "SASL_SSL")
        assert f'.{module} required username="token"' in config["sasl.jaas.config"]


def test_a_public_authority_needs_no_truststore_and_no_tls_no_encryption() -> None:
    public = connection(tls={"trustedCertificates": []})
    assert public["security.protocol"] == "SASL_SSL"
    assert "ssl.truststore.certificates" not in public
    assert connection(tls={})["security.protocol"] == "SASL_SSL"
    assert connection(tls=None)["security.protocol"] == "SASL_PLAINTEXT"
    assert connection(tls=None, authentication=None)["security.protocol"] == "PLAINTEXT"


def test_several_sources_lead_to_connectors_of_their_own() -> None:
    resource = spec()
    resource["mirrors"].append({"source": side("other", 3), "topicsPattern": "b", "sourceConnector": {}})
    names = [entry.name for entry in connectors.definitions("mm2", resource, SECRETS)]
    assert names[2:] == ["other->tgt.MirrorSourceConnector"]
    assert {entry.secret for entry in connectors.secret_files(resource)} == {"tgt-secret", "src-secret", "other-secret"}


def test_free_options_reach_the_connector_as_they_are() -> None:
    resource = spec()
    options = {"producer.override.linger.ms": 50, "consumer.max.poll.records": 10, "sync.topic.configs.enabled": True}
    resource["mirrors"][0]["sourceConnector"]["config"] = options
    config = connectors.definitions("mm2", resource, SECRETS)[0].config
    assert [config[key] for key in options] == ["50", "10", "true"]


def test_a_refused_certificate_is_named_by_its_secret() -> None:
    pair = {"secretName": "mine", "certificate": "user.crt", "key": "user.key"}
    cluster = side("src", 1) | {"authentication": {"type": "tls", "certificateAndKey": pair}}
    problem = refusal("mm2", cluster, line(1, "Failed to process post-handshake messages"))
    assert problem
    assert problem[0] == "AuthenticationFailed"
    assert all(word in problem[1] for word in ("src", "mine", "user.crt", "user.key"))


def test_a_connector_knows_the_config_maps_of_its_offsets() -> None:
    resource = spec()
    resource["mirrors"][0]["sourceConnector"] |= {
        "listOffsets": {"toConfigMap": {"name": "listed"}},
        "alterOffsets": {"fromConfigMap": {"name": "wanted"}},
    }
    source, checkpoint = connectors.definitions("mm2", resource, SECRETS)
    assert (source.list_offsets_to, source.alter_offsets_from) == ("listed", "wanted")
    assert (checkpoint.list_offsets_to, checkpoint.alter_offsets_from) == (None, None)
