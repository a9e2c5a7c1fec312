"""The rule on secrets in plain text."""

import base64
from typing import Any

import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from policies.rules.security.plain_secrets import POLICY
from tests.support import compliant_resources as kit

VALUE = "hunter2"
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required username='u' password='{}';"
KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"


def violation() -> list[kit.Sample]:
    return [kit.core("ConfigMap", "settings", data={"client.properties": "ssl.key.password=made-up\n"})]


def message(described: str, place: str) -> str:
    return (
        f"{described}: {place} must refer to a secret (got a value in plain text). "
        "Whoever may read the resource can read it. Move it into a Secret, and change it."
    )


def connector(shape: str, **config: object) -> kit.Sample:
    spec = {"class": "Sink", "config": {key.replace("_", "."): value for key, value in config.items()}}
    return kit.Sample(f"kubernetes:{shape}:KafkaConnector", {"metadata": {"name": "sink"}, "spec": spec})


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_stack_that_refers_to_its_secrets_passes(shape: str) -> None:
    assert [message for sample in kit.compliant(shape) for message in kit.judge(POLICY, sample)] == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_placeholders_of_config_providers_pass(shape: str) -> None:
    placeholder = "${secrets:rt-inventory-stg/database:password}"
    sample = connector(shape, database_password=placeholder, sasl_jaas_config=JAAS.format(placeholder))
    assert kit.judge(POLICY, sample) == []


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_every_secret_of_a_connector_is_reported_by_its_place(shape: str) -> None:
    sample = connector(
        shape,
        database_password=VALUE,
        sasl_jaas_config=JAAS.format(VALUE),
        ssl_keystore_key=KEY,
        url=f"a://b:{VALUE}@c",
    )
    found = kit.judge(POLICY, sample)
    assert found == [
        message("KafkaConnector sink", "spec.config[database.password]"),
        message("KafkaConnector sink", "spec.config[sasl.jaas.config], password,"),
        message("KafkaConnector sink", "spec.config[ssl.keystore.key]"),
        message("KafkaConnector sink", "spec.config.url, password of a URL,"),
    ]
    assert VALUE not in str(found)


@pytest.mark.parametrize("shape", kit.SHAPES)
@pytest.mark.parametrize("key", ["ssl.keystore.password", "ssl.key.password", "basic.auth.user.info", "api.key"])
def test_configuration_of_a_mirror_is_judged(shape: str, key: str) -> None:
    mirror = kit.mirror(shape)
    kit.target(mirror)["config"][key] = VALUE
    where = "spec.target.config" if shape == kit.V1 else "spec.clusters[es-tgt].config"
    assert kit.judge(POLICY, mirror) == [message("KafkaMirrorMaker2 mm2", f"{where}[{key}]")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_a_password_of_a_user_in_plain_text_is_reported(shape: str) -> None:
    user = kit.user(shape)
    user.spec["authentication"]["password"] = VALUE
    assert kit.judge(POLICY, user) == [message("KafkaUser rt-inv-stg-user", "spec.authentication.password")]


@pytest.mark.parametrize("shape", kit.SHAPES)
def test_variables_and_system_properties_of_a_cluster_are_judged(shape: str) -> None:
    cluster = kit.cluster(shape)
    env = [{"name": "STORE_PASSWORD", "value": VALUE}, {"name": "KAFKA_OPTS", "value": f"-Da.password={VALUE} -Db=c"}]
    brokers = kit.brokers(cluster)
    brokers["template"] = {"kafkaContainer": {"env": env}}
    brokers["jvmOptions"] = {"javaSystemProperties": [{"name": "javax.net.ssl.keyStorePassword", "value": VALUE}]}
    kind = "EventStreams" if shape == kit.EVENT_STREAMS else "Kafka"
    where = "spec.strimziOverrides.kafka" if shape == kit.EVENT_STREAMS else "spec.kafka"
    assert kit.judge(POLICY, cluster) == [
        message(f"{kind} {kit.NAMESPACE}", f"{where}.template.kafkaContainer.env[STORE_PASSWORD].value"),
        message(f"{kind} {kit.NAMESPACE}", f"{where}.template.kafkaContainer.env[KAFKA_OPTS].value, a.password,"),
        message(
            f"{kind} {kit.NAMESPACE}",
            f"{where}.jvmOptions.javaSystemProperties[javax.net.ssl.keyStorePassword].value",
        ),
    ]


def test_fields_about_secrets_and_rights_on_them_pass() -> None:
    cluster, user = kit.cluster(kit.V1), kit.user(kit.V1)
    kit.brokers(cluster)["config"] |= {"delegation.token.max.lifetime.ms": 604_800_000, "auto.offset.reset": "latest"}
    oauth = {
        "type": "oauth",
        "tokenEndpointUri": "https://example.com/token",
        "clientSecret": {"secretName": "oauth", "key": "secret"},
        "accessTokenIsJwt": True,
    }
    kit.brokers(cluster)["listeners"][0]["authentication"] = oauth
    cluster.spec["entityOperator"] = {"userOperator": {"secretPrefix": "kafka-"}}
    user.spec["authorization"]["acls"][0]["resource"] = {"type": "delegationToken", "name": "reports"}
    assert kit.judge(POLICY, cluster) + kit.judge(POLICY, user) == []


def test_pushing_and_pulling_an_image_names_secrets() -> None:
    spec = {"build": {"output": {"image": "a:1", "pushSecret": "b"}}, "template": {"buildConfig": {"pullSecret": "c"}}}
    sample = kit.Sample("kubernetes:kafka.strimzi.io/v1:KafkaConnect", {"metadata": {"name": "sink"}, "spec": spec})
    assert kit.judge(POLICY, sample) == []


def test_keys_and_files_of_a_config_map_are_judged() -> None:
    files = {
        "password": VALUE,
        "client.properties": f"security.protocol=SSL\nssl.keystore.password={VALUE}\nssl.keystore.location=/a/b\n",
        "tls.key": KEY,
        "rules.yml": 'rules:\n- pattern: kafka.server<type=(.+)><>Count\n  labels:\n    token: "$1"\n',
        "dashboard.json": '{"templating": {"list": []}, "expr": "x{secret=\\"a\\"}", "password": ""}',
    }
    assert kit.judge(POLICY, kit.core("ConfigMap", "settings", data=files)) == [
        message("ConfigMap settings", "data.password"),
        message("ConfigMap settings", "data[client.properties] line 2, ssl.keystore.password,"),
        message("ConfigMap settings", "data[tls.key] line 1, private key,"),
    ]


def test_texts_in_the_binary_data_of_a_config_map_are_judged() -> None:
    files = {"a.key": base64.b64encode(KEY.encode()).decode(), "b.p12": "MIIACf8=", "c": "no base64"}
    assert kit.judge(POLICY, kit.core("ConfigMap", "settings", binaryData=files)) == [
        message("ConfigMap settings", "binaryData[a.key] line 1, private key,")
    ]


def container(**fields: object) -> kit.Spec:
    return {"containers": [{"name": "app", **fields}]}


@pytest.mark.parametrize(
    ("type_", "wrap", "where"),
    [
        ("core/v1:Pod", lambda pod: pod, "spec"),
        ("apps/v1:Deployment", lambda pod: {"template": {"spec": pod}}, "spec.template.spec"),
        (
            "batch/v1:CronJob",
            lambda pod: {"jobTemplate": {"spec": {"template": {"spec": pod}}}},
            "spec.jobTemplate.spec.template.spec",
        ),
    ],
)
def test_variables_and_arguments_of_workloads_are_judged(type_: str, wrap: Any, where: str) -> None:
    env = [
        {"name": "DB_PASSWORD", "value": VALUE},
        {"name": "API_KEY", "valueFrom": {"secretKeyRef": {"name": "api", "key": "password"}}},
        {"name": "TOKEN_FILE", "value": "/run/token"},
        {"name": "STRIMZI_IMAGE_PULL_SECRETS", "value": "registry"},
    ]
    spec = wrap(container(env=env, args=["--token=$(API_KEY)", f"--password={VALUE}"]))
    sample = kit.Sample(f"kubernetes:{type_}", {"metadata": {"name": "app"}, "spec": spec})
    described = f"{type_.partition(':')[2]} app"
    assert kit.judge(POLICY, sample) == [
        message(described, f"{where}.containers[app].env[DB_PASSWORD].value"),
        message(described, f"{where}.containers[app].args[1], password,"),
    ]


def test_configuration_arguments_and_variables_of_spark_are_judged() -> None:
    spec = {
        "arguments": ["--token=$(API_KEY)", f"--password={VALUE}"],
        "sparkConf": {"spark.authenticate": "true", "spark.authenticate.secret": VALUE},
        "driver": {"env": [{"name": "DB_PASSWORD", "value": VALUE}], "envFrom": [{"secretRef": {"name": "db"}}]},
    }
    type_ = "kubernetes:sparkoperator.k8s.io/v1beta2:SparkApplication"
    assert kit.judge(POLICY, kit.Sample(type_, {"metadata": {"name": "app"}, "spec": spec})) == [
        message("SparkApplication app", "spec.arguments[1], password,"),
        message("SparkApplication app", "spec.sparkConf[spark.authenticate.secret]"),
        message("SparkApplication app", "spec.driver.env[DB_PASSWORD].value"),
    ]


def test_variables_of_an_operators_subscription_are_judged() -> None:
    sample = kit.subscription()
    sample.spec["config"] = {"env": [{"name": "PROXY_PASSWORD", "value": VALUE}]}
    expected = [message("Subscription strimzi-kafka-operator", "spec.config.env[PROXY_PASSWORD].value")]
    assert kit.judge(POLICY, sample) == expected


def test_keys_can_be_ignored() -> None:
    sample = connector(kit.V1, my_token=VALUE, database_password=VALUE, sasl_jaas_config=JAAS.format(VALUE))
    assert kit.judge(POLICY, sample, ignoredKeys=[r"my\..*", "password"]) == [
        message("KafkaConnector sink", "spec.config[database.password]")
    ]
    assert kit.judge(POLICY, sample, ignoredKeys=[r"my\.token", ".*password", "sasl.jaas.config"]) == []


def test_an_expression_that_cannot_be_read_ignores_nothing_and_is_reported() -> None:
    found = kit.judge(POLICY, connector(kit.V1, database_password=VALUE), ignoredKeys=["*"])
    assert found[0].startswith("KafkaConnector sink: option ignoredKeys must hold regular expressions (got *: ")
    assert found[1:] == [message("KafkaConnector sink", "spec.config[database.password]")]


def test_secrets_of_kubernetes_and_other_types_are_ignored() -> None:
    assert kit.judge(POLICY, kit.core("Secret", "login", stringData={"password": VALUE})) == []
    sample = connector(kit.V1, database_password=VALUE)
    assert kit.judge(POLICY, kit.Sample("kubernetes:example.com/v1:KafkaConnector", sample.props)) == []


def test_one_unknown_value_hides_no_other() -> None:
    sample = connector(kit.V1, database_password=UNKNOWN_STRING_VALUE, api_key=VALUE)
    assert kit.judge(POLICY, sample) == [message("KafkaConnector sink", "spec.config[api.key]")]


@pytest.mark.parametrize("password", [12345678, 12345678.0, 0.5])
def test_a_password_that_is_a_number_is_reported(password: float) -> None:
    mirror = kit.mirror(kit.V1)
    kit.flow(mirror)["sourceConnector"]["config"] |= {"connection.password": password, "token": 7, "secret": True}
    found = kit.judge(POLICY, mirror)
    assert len(found) == 1
    assert "config[connection.password] must refer to a secret" in found[0]
