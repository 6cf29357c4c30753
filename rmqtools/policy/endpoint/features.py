"""Features of servers: since which broker version, and whether through a 5.x proxy.

One table: refusals, the documentation and programs that print it are made from it.
Source of the rules: RequestCode and MQVersion of the servers' jars 4.9.7 to 5.5.0; RemotingProtocolServer
(proxy 5.5.0), whose processors are the requests that a proxy answers.

Three places refuse: ``Endpoint.require`` before anything is sent; ``broker_versions``, which asks a broker
for its version before the first message that it could misunderstand; ``Remoting.invoke_ok``, if the server
answers that it does not know the request.
"""

from collections.abc import Sequence

from rmqtools.model.codes import RequestCode
from rmqtools.model.record import record


@record
class Feature:
    """One feature, as users see it.

    Attributes:
        name: for tables and errors: "the pins of a group".
        codes: requests that only this feature uses; an answer "not supported" to one of them means it.
        since: the first version of brokers that has it; "" is every version from 4.9 on.
        through_proxy: whether it works where ``name_server`` is a proxy's remoting port.
        instead: the remedy if a proxy refuses it.
        on_old_brokers: the remedy if brokers are too old.
        note: restrictions when it works through a proxy.
    """

    name: str
    codes: tuple[RequestCode, ...] = ()
    since: str = ""
    through_proxy: bool = True
    instead: str = ""
    on_old_brokers: str = "upgrade the brokers"
    note: str = ""


_NAME_SERVERS = "give the name servers themselves as name_server"

SENDING = Feature(
    name="messages: one, one-way, batches, send_many",
    codes=(RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE),
    note="topics of message_type NORMAL or MIXED",
)
SHARDING_KEYS = Feature(
    name="messages with a sharding key, send_orderly", note="topics of message_type FIFO or MIXED"
)
DELAY_LEVELS = Feature(name="messages with a delay level", note="topics of message_type DELAY or MIXED")
DELAYS = Feature(
    name="messages with delay or deliver_at_ms",
    since="5.0.0",
    on_old_brokers="use delay_level, or upgrade the brokers",
    note="topics of message_type DELAY or MIXED",
)
RECALL = Feature(
    name="recalling delayed messages",
    codes=(RequestCode.RECALL_MESSAGE,),
    since="5.3.2",
    note="topics of message_type DELAY or MIXED",
)
PRIORITY = Feature(
    name="messages with a priority",
    since="5.4.0",
    on_old_brokers="send without priority, or upgrade the brokers",
    note="topics of message_type PRIORITY or MIXED",
)
TRANSACTIONS = Feature(
    name="messages in transactions",
    codes=(RequestCode.END_TRANSACTION,),
    note="topics of message_type TRANSACTION or MIXED; a decision counts when a broker asks for it, by "
    "default within a minute, not at once",
)
TRACES = Feature(
    name="traces of sent and consumed messages (enable_trace)",
    note="where the proxy has traceOn=true, which is not its default; else the log has trace_switched_off",
)
REQUEST_REPLY = Feature(
    name="requests and replies",
    codes=(RequestCode.SEND_REPLY_MESSAGE, RequestCode.SEND_REPLY_MESSAGE_V2),
    through_proxy=False,
    instead=_NAME_SERVERS,
)
BROADCASTING = Feature(name="consumers of all queues (message_model BROADCASTING)")
CONSUMING = Feature(
    name="push and pull consumers",
    codes=(RequestCode.PULL_MESSAGE, RequestCode.GET_CONSUMER_LIST_BY_GROUP, RequestCode.HEART_BEAT),
    note="all members of a group use proxies, or none does: brokers do not list those that use a proxy",
)
ORDERLY_CONSUMING = Feature(
    name="consumers in order", codes=(RequestCode.LOCK_BATCH_MQ, RequestCode.UNLOCK_BATCH_MQ)
)
RETRIES = Feature(name="failed messages that come again", codes=(RequestCode.CONSUMER_SEND_MSG_BACK,))
BROKER_SHARES = Feature(
    name="queues shared out by brokers, popped messages (client_rebalance=False)",
    codes=(
        RequestCode.QUERY_ASSIGNMENT,
        RequestCode.SET_MESSAGE_REQUEST_MODE,
        RequestCode.POP_MESSAGE,
        RequestCode.ACK_MESSAGE,
        RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
    ),
    since="5.0.0",
    through_proxy=False,
    instead=f"set client_rebalance=True, or {_NAME_SERVERS}",
    on_old_brokers="set client_rebalance=True, or upgrade the brokers",
)
SIMPLE_CONSUMING = Feature(
    name="single messages received and acknowledged (SimpleConsumer)",
    codes=(RequestCode.NOTIFICATION,),
    since="5.0.0",
    through_proxy=False,
    instead=f"use PushConsumer or PullConsumer, or {_NAME_SERVERS}",
    on_old_brokers="use PushConsumer or PullConsumer, or upgrade the brokers",
)
SUSPENDED_TRIES = Feature(
    name="tries that do not count (suspend=True)",
    since="5.5.0",
    through_proxy=False,
    instead=_NAME_SERVERS,
    on_old_brokers="leave out suspend, or upgrade the brokers",
)
BATCH_ACKNOWLEDGEMENTS = Feature(
    name="popped messages acknowledged together",
    codes=(RequestCode.BATCH_ACK_MESSAGE,),
    since="5.1.3",
    through_proxy=False,
    instead=_NAME_SERVERS,
    on_old_brokers="leave out batched, or upgrade the brokers",
    note="push consumers acknowledge singly on older brokers",
)
SQL_FILTERS = Feature(
    name="conditions (sql=...)",
    through_proxy=False,
    instead="a proxy passes every condition unchecked, and brokers answer one they cannot read with all "
    f"messages: use tags, or {_NAME_SERVERS}",
)
PINS = Feature(
    name="the pins of a group",
    codes=(
        RequestCode.GET_KV_CONFIG,
        RequestCode.PUT_KV_CONFIG,
        RequestCode.DELETE_KV_CONFIG,
        RequestCode.GET_KVLIST_BY_NAMESPACE,
    ),
    through_proxy=False,
    instead=f"pins are kept by name servers: use AllocatePinnedByIp, or {_NAME_SERVERS}",
)
RANGE_READS = Feature(
    name="range reads, Spark reads and writes",
    note="without topicPattern, sql, messageKeys, messageIds and delivery=exactlyOnce",
    codes=(
        RequestCode.GET_MIN_OFFSET,
        RequestCode.GET_MAX_OFFSET,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
    ),
)
CONSUMER_OFFSETS = Feature(
    name="offsets of a group: looking at them, moving them",
    codes=(RequestCode.QUERY_CONSUMER_OFFSET, RequestCode.UPDATE_CONSUMER_OFFSET),
)
STATIC_TOPICS = Feature(
    name="static topics",
    since="5.0.0",
    note="until a queue moves to another broker: then requests are refused with NOT_LEADER_FOR_QUEUE, and "
    f"messages may be consumed again: {_NAME_SERVERS}",
)
EXACT_APPENDS = Feature(
    name="exact appends, mirrors of topics (rmqtools mirror)",
    through_proxy=False,
    instead=f"the connection from a proxy to a broker is not the writer's own: {_NAME_SERVERS}",
)
ACCESS_KEYS = Feature(
    name="access control (access_key, secret_key)",
    note="the proxy checks its clients with authenticationEnabled=true and authorizationEnabled=true; "
    "brokers see only the proxy's own keys",
)
TLS = Feature(name="TLS (tls_enable)", note="the certificate is the proxy's")
TOPIC_ATTRIBUTES = Feature(
    name="attributes of topics (message_type=..., attributes=...)",
    since="5.0.0",
    through_proxy=False,
    instead=_NAME_SERVERS,
    on_old_brokers="make the topic without them, or upgrade the brokers",
)
TOPICS = Feature(
    name="operating topics and brokers: list, create, delete, statistics",
    codes=(
        RequestCode.GET_BROKER_CLUSTER_INFO,
        RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER,
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        RequestCode.DELETE_TOPIC_IN_BROKER,
        RequestCode.DELETE_TOPIC_IN_NAMESRV,
        RequestCode.GET_TOPIC_STATS_INFO,
        RequestCode.GET_BROKER_RUNTIME_INFO,
        RequestCode.GET_BROKER_CONFIG,
        RequestCode.UPDATE_BROKER_CONFIG,
        RequestCode.GET_EARLIEST_MSG_STORETIME,
    ),
    through_proxy=False,
    instead=_NAME_SERVERS,
)
GROUPS = Feature(
    name="operating groups: members, statistics, settings, reset, rmqtools group",
    codes=(
        RequestCode.GET_CONSUMER_CONNECTION_LIST,
        RequestCode.GET_CONSUME_STATS,
        RequestCode.GET_CONSUMER_RUNNING_INFO,
        RequestCode.CONSUME_MESSAGE_DIRECTLY,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
    ),
    through_proxy=False,
    instead=f"{_NAME_SERVERS}; members that connect through a proxy are listed there, without a report of "
    "their own",
)
QUEUE_RESETS = Feature(
    name="offsets of one queue moved while its group consumes (rmqtools group skip --queue)",
    since="5.1.0",
    through_proxy=False,
    instead=_NAME_SERVERS,
    on_old_brokers="move all queues by time (rmqtools group reset --to-time), or stop the members and use "
    "rmqtools group reset --to-offset",
)
MESSAGE_QUERIES = Feature(
    name="single messages: by id, by key, rmqtools message",
    codes=(RequestCode.VIEW_MESSAGE_BY_ID, RequestCode.QUERY_MESSAGE),
    through_proxy=False,
    instead=_NAME_SERVERS,
)

FEATURES: Sequence[Feature] = (
    SENDING,
    SHARDING_KEYS,
    DELAY_LEVELS,
    DELAYS,
    RECALL,
    PRIORITY,
    TRANSACTIONS,
    TRACES,
    REQUEST_REPLY,
    CONSUMING,
    BROADCASTING,
    ORDERLY_CONSUMING,
    RETRIES,
    BROKER_SHARES,
    SIMPLE_CONSUMING,
    SUSPENDED_TRIES,
    BATCH_ACKNOWLEDGEMENTS,
    SQL_FILTERS,
    PINS,
    RANGE_READS,
    CONSUMER_OFFSETS,
    STATIC_TOPICS,
    EXACT_APPENDS,
    ACCESS_KEYS,
    TLS,
    TOPIC_ATTRIBUTES,
    TOPICS,
    GROUPS,
    QUEUE_RESETS,
    MESSAGE_QUERIES,
)

_BY_CODE = {code: feature for feature in FEATURES for code in feature.codes}


def feature_of(code: int) -> Feature | None:
    """Return the feature that a request belongs to; None for requests that the table does not name."""
    return _BY_CODE.get(RequestCode.of(code))  # type: ignore[call-overload, no-any-return]


def feature_rows(features: Sequence[Feature] = FEATURES) -> list[tuple[str, str, str]]:
    """Return the table as texts: the feature, the brokers that have it, the behaviour of a proxy."""
    return [(each.name, _brokers(each), _through_proxy(each)) for each in features]


def _brokers(feature: Feature) -> str:
    return f"{feature.since} or newer" if feature.since else "all"


def _through_proxy(feature: Feature) -> str:
    if not feature.through_proxy:
        return f"refused: {feature.instead}"
    return f"passes: {feature.note}" if feature.note else "passes"
