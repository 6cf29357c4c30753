"""Keys and TLS as Spark options, on a broker with ACL 2.0 behind TLS; and no secret in any text."""

import logging
import ssl
from contextlib import ExitStack
from functools import partial

import pytest
import trustme

from rmqtools import Admin, ClientConfig
from tests.spark.conftest import ADMIN
from tests.spark.streams import error_of
from tests.support.relay import TlsProxy

SECRET = ADMIN["secret_key"]
WRONG = "wr0ng-secret"


@pytest.fixture(scope="module")
def where(acl_cluster, tmp_path_factory):
    """Options that lead to the topic ``signed`` over TLS; without keys."""
    folder, authority = tmp_path_factory.mktemp("tls"), trustme.CA()
    (folder / "ca.pem").write_bytes(authority.cert_pem.bytes())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with Admin(ClientConfig(name_server=acl_cluster.name_server, **ADMIN)) as admin, ExitStack() as stack:
        admin.create_topic("signed", read_queue_nums=1, write_queue_nums=1)
        (broker,) = admin.fetch_cluster_info().broker_addr_table.values()
        addr = broker.broker_addrs[0]
        name_server, behind = (
            stack.enter_context(TlsProxy(one, context).serving()) for one in (acl_cluster.name_server, addr)
        )
        yield {
            "nameServer": name_server.addr,
            "brokerAddressMap": f"{addr}={behind.addr}",
            "topic": "signed",
            "tls.enable": "true",
            "tls.caFile": str(folder / "ca.pem"),
        }


@pytest.fixture
def write_two(write):
    return partial(write, [("a",), ("b",)], "body string")


def test_a_signed_write_over_tls_is_read_back(spark, where, write_two, tmp_path):
    file = tmp_path / "keys"
    file.write_text(f"accessKey: admin\nsecretKey: {SECRET}\n")

    write_two(**where, credentialsFile=str(file))

    keys = {"accessKey": "admin", "secretKey": SECRET}
    rows = spark.read.format("rocketmq").options(**where, **keys).load().collect()
    assert sorted(bytes(row.body) for row in rows) == [b"a", b"b"]


def test_no_text_that_spark_shows_holds_a_secret(spark, where, write_two, capfd, caplog):
    keys = {"accessKey": "admin", "secretKey": WRONG}
    with caplog.at_level(logging.DEBUG, "spark_connector"):
        refused = error_of(lambda: write_two(**where, **keys))
    unknown = error_of(lambda: write_two(**where, **keys, stampp="true"))
    half = error_of(lambda: write_two(**where, secretKey=WRONG))
    listed = ", ".join(f"`{name}` '{value}'" for name, value in (where | keys).items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW signed_view USING rocketmq OPTIONS ({listed})")
    insert = "INSERT INTO signed_view (body) SELECT CAST('a' AS binary)"
    view = spark.table("signed_view")
    view.explain(extended=True)
    plans = spark.sql(f"EXPLAIN EXTENDED {insert}").collect()[0][0]
    shown = capfd.readouterr()

    assert "check signature failed" in refused
    assert "did you mean 'stamp'?" in unknown
    assert "go together" in half
    for text in (refused, unknown, half, plans, shown.out, shown.err, caplog.text, repr(view)):
        assert WRONG not in text
