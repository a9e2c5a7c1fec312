"""The login of a Java client as its `sasl.jaas.config` says it: one entry of JAAS."""

from settings.users import AnyAuthentication

_PACKAGE = "org.apache.kafka.common.security"


def sasl_jaas_config(authentication: AnyAuthentication, username: str, password: str) -> str:
    """Return the entry of a user with a password, or with what stands for one."""
    module = "plain.PlainLoginModule" if authentication == "plain" else "scram.ScramLoginModule"
    return f"{_PACKAGE}.{module} required username={_quoted(username)} password={_quoted(password)};"


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
