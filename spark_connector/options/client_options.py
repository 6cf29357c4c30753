"""Options of the client, for reads and writes alike, and options of Spark itself."""

from typing import Final

from spark_connector.options.option import Option, Where, parse_address_map, parse_name

CLIENT_OPTIONS: Final = (
    Option(
        "nameServer",
        "host:port, several separated by ;",
        parse_name,
        None,
        "The name servers of the cluster. Required, unless the driver has NAMESRV_ADDR in its environment.",
        Where.BOTH,
        "name_server",
    ),
    Option(
        "namespace",
        "text",
        parse_name,
        None,
        "The namespace that topics and groups are in.",
        Where.BOTH,
        "namespace",
    ),
    Option(
        "brokerAddressMap",
        "from=to pairs separated by commas",
        parse_address_map,
        None,
        "Replaces broker addresses of the route before connecting, for Docker, Kubernetes, NAT. From: "
        "`host:port`, `prefix*`, `*:port` or `*`; to: `host:port`, or `host:*` to keep the port.",
        Where.BOTH,
        "broker_address_map",
    ),
    Option(
        "accessKey",
        "text",
        parse_name,
        None,
        "The user name for access control.",
        Where.BOTH,
        "access_key",
        secret=True,
    ),
    Option(
        "secretKey",
        "text",
        parse_name,
        None,
        "The password that goes with it.",
        Where.BOTH,
        "secret_key",
        secret=True,
    ),
    Option(
        "credentialsFile",
        "a file's path on the driver",
        parse_name,
        None,
        "A file with lines accessKey: ... and secretKey: ..., instead of the two options. Without either, "
        "the driver's environment variables ROCKETMQ_ACCESS_KEY and ROCKETMQ_SECRET_KEY are used.",
        Where.BOTH,
    ),
    Option(
        "tls.*",
        "as the client's tls_ settings",
        str,
        None,
        "Encrypted connections: tls.enable, tls.caFile, tls.certFile, tls.keyFile, tls.keyPassword, "
        "tls.checkHostname.",
        Where.BOTH,
        "tls_",
        secret=True,
    ),
    Option(
        "rocketmq.*",
        "as the client's settings",
        str,
        None,
        "Any other setting of the client, e.g. rocketmq.requestTimeout=10 (seconds).",
        Where.BOTH,
        "",
        secret=True,
    ),
    Option(
        "path", "text", str, None, "Accepted and not used: load(path) and save(path) set it.", Where.SPARK
    ),
    Option("checkpointLocation", "text", str, None, "Spark's own; accepted everywhere.", Where.SPARK),
    Option("queryName", "text", str, None, "Spark's own; pipelines set it for their sinks.", Where.SPARK),
)
