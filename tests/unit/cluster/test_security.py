import pytest

from rmqtools.cluster import ClusterSecurity, LocalCluster
from rmqtools.cluster.security import secure
from rmqtools.errors import ConfigError


def test_every_file_is_for_its_owner_only(tmp_path):
    secure(tmp_path, ClusterSecurity(client_certificates=True))

    files = list((tmp_path / "secure").iterdir())
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert (tmp_path / "secure").stat().st_mode & 0o777 == 0o700
    assert {path.name for path in files} == {
        *("ca.pem", "ca.key", "server.pem", "server.key", "client.pem", "client.key", "tls.properties"),
        *("credentials", "secret_key"),
    }


def test_the_servers_get_keys_in_the_form_they_read(tmp_path):
    secure(tmp_path, ClusterSecurity())

    assert "BEGIN PRIVATE KEY" in (tmp_path / "secure" / "server.key").read_text()


def test_the_servers_find_their_certificates_in_a_directory_of_any_name(tmp_path):
    secure(tmp_path / "b\\ü", ClusterSecurity())

    lines = (tmp_path / "b\\ü" / "secure" / "tls.properties").read_text().splitlines()
    assert f"tls.server.keyPath={tmp_path}/b\\u005c\\u00fc/secure/server.key" in lines


def test_a_restart_has_the_key_that_the_brokers_know_and_new_certificates(tmp_path):
    first, second = (secure(tmp_path, ClusterSecurity()) for _ in range(2))

    assert first.client_settings == second.client_settings
    assert first.client_settings["secret_key"] not in repr(first)


def test_clients_get_a_certificate_only_if_servers_want_one(tmp_path):
    assert "tls_cert_file" not in secure(tmp_path, ClusterSecurity()).client_settings
    assert "tls_cert_file" in secure(tmp_path, ClusterSecurity(client_certificates=True)).client_settings
    assert secure(tmp_path, ClusterSecurity(tls=False)).flags == ()
    assert secure(tmp_path, ClusterSecurity(acl=False)).broker_settings == {}


@pytest.mark.parametrize("more", [{"version": "4.9.7"}, {"proxy": True}, {"slaves": 1}])
def test_what_cannot_be_secured_is_refused(more):
    with pytest.raises(ConfigError, match="leave one of them out"):
        LocalCluster(security=ClusterSecurity(), **more)
