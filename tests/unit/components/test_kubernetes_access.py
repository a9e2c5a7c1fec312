"""Access by the provider's configuration: what cannot be read says why, and quotes nothing of a kubeconfig."""

import traceback
from pathlib import Path

import pytest

from components.kubernetes_objects import KubernetesAccess, UnreadableError

TOKEN = "made-up-token"
BROKEN = f"users: [{{name: me, user: {{token: {TOKEN}\ncontexts: ["


@pytest.mark.parametrize("as_file", [False, True], ids=["text", "file"])
def test_a_kubeconfig_that_is_no_yaml_is_not_quoted(tmp_path: Path, as_file: bool) -> None:
    kubeconfig = BROKEN
    if as_file:
        file = tmp_path / "kubeconfig"
        file.write_text(BROKEN, encoding="utf-8")
        kubeconfig = str(file)
    with pytest.raises(UnreadableError, match="the API server cannot be asked, ParserError") as error:
        KubernetesAccess(kubeconfig=kubeconfig).secret("dev", "user-credentials")
    assert TOKEN not in "".join(traceback.format_exception(error.value))
