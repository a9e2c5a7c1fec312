"""Alertmanager's configuration as an AlertmanagerConfig: the same routes under other names, and no address anywhere."""

from typing import Any

import pytest

from monitoring.alert_routes import alertmanager_config, definitions, with_definitions

CONFIG: dict[str, Any] = {
    "route": {
        "receiver": "nobody",
        "group_by": ["stack", "mirror"],
        "group_wait": "30s",
        "repeat_interval": "4h",
        "routes": [
            {"matchers": ['stage="production"', 'severity=~"critical|warning"'], "receiver": "pager", "continue": True},
            {"matchers": ["stack != dev"], "receiver": "pager", "routes": [{"receiver": "nobody"}]},
        ],
    },
    "inhibit_rules": [
        {"source_matchers": ["severity=critical"], "target_matchers": ["severity!=critical"], "equal": ["stack"]}
    ],
    "receivers": [
        {"name": "nobody"},
        {
            "name": "pager",
            "slack_configs": [
                {
                    "api_url_file": "/etc/alertmanager/address",
                    "channel": "#kafka",
                    "send_resolved": True,
                    "title": '{{ template "own.title" . }}',
                    "text": "{{ .CommonAnnotations.summary }}",
                    "title_link": "https://example.com",
                    "icon_url": "https://example.com/icon.png",
                    "mrkdwn_in": ["text"],
                    "actions": [{"type": "button", "text": "Runbook", "url": '{{ template "own.link" . }}'}],
                }
            ],
        },
    ],
}
TEMPLATES = [
    '{{ define "own.title" }}{{ if eq .Status "firing" }}{{ template "own.word" . }}{{ else }}ok{{ end }}{{ end }}\n',
    '{{- define "own.word" -}}{{ range .Alerts }}!{{ end }}{{- end -}}{{ define "own.link" }}https://x{{ end }}',
]


def written() -> dict[str, Any]:
    return alertmanager_config(CONFIG, TEMPLATES, "alerts")


def test_routes_keep_their_order_and_their_matchers_are_taken_apart() -> None:
    assert written()["route"] == {
        "receiver": "nobody",
        "groupBy": ["stack", "mirror"],
        "groupWait": "30s",
        "repeatInterval": "4h",
        "routes": [
            {
                "matchers": [
                    {"name": "stage", "matchType": "=", "value": "production"},
                    {"name": "severity", "matchType": "=~", "value": "critical|warning"},
                ],
                "receiver": "pager",
                "continue": True,
            },
            {
                "matchers": [{"name": "stack", "matchType": "!=", "value": "dev"}],
                "receiver": "pager",
                "routes": [{"receiver": "nobody"}],
            },
        ],
    }


def test_what_is_more_silences_what_is_less() -> None:
    assert written()["inhibitRules"] == [
        {
            "sourceMatch": [{"name": "severity", "matchType": "=", "value": "critical"}],
            "targetMatch": [{"name": "severity", "matchType": "!=", "value": "critical"}],
            "equal": ["stack"],
        }
    ]
    without = {key: value for key, value in CONFIG.items() if key != "inhibit_rules"}
    assert "inhibitRules" not in alertmanager_config(without, TEMPLATES, "alerts")


def test_the_address_comes_from_the_secret_and_from_nowhere_else() -> None:
    nobody, pager = written()["receivers"]
    assert nobody == {"name": "nobody"}
    (config,) = pager["slackConfigs"]
    assert config["apiURL"] == {"name": "alerts", "key": "address"}
    assert "/etc/alertmanager" not in str(written())


def test_fields_have_the_resources_names() -> None:
    (config,) = written()["receivers"][1]["slackConfigs"]
    assert set(config) == {
        *("apiURL", "channel", "sendResolved", "title", "text", "titleLink", "iconURL", "mrkdwnIn", "actions")
    }
    assert config["sendResolved"] is True
    assert config["mrkdwnIn"] == ["text"]


def test_a_text_brings_along_what_it_uses_and_nothing_else() -> None:
    (config,) = written()["receivers"][1]["slackConfigs"]
    assert config["text"] == "{{ .CommonAnnotations.summary }}"
    assert config["title"].endswith(
        '{{ end }}{{ end }}{{- define "own.word" -}}{{ range .Alerts }}!{{ end }}{{- end -}}'
        '{{ template "own.title" . }}'
    )
    assert "own.link" not in config["title"]
    assert config["actions"][0]["url"] == '{{ define "own.link" }}https://x{{ end }}{{ template "own.link" . }}'


def test_definitions_end_where_they_end() -> None:
    found = definitions("".join(TEMPLATES))
    assert set(found) == {"own.title", "own.word", "own.link"}
    assert all(text.count("define") == 1 for text in found.values())


def test_a_template_that_nobody_defines_is_reported() -> None:
    with pytest.raises(ValueError, match=r"template slack\.text: must be defined \(allowed own\.title\)"):
        with_definitions('{{ template "slack.text" . }}', {"own.title": ""})


def test_a_matcher_that_is_none_is_reported() -> None:
    config = {**CONFIG, "route": {"receiver": "nobody", "matchers": ["stage"]}}
    with pytest.raises(ValueError, match="matcher stage: must be label, =, !=, =~ or !~, and a value"):
        alertmanager_config(config, TEMPLATES, "alerts")
