"""Headers of topics, routes and settings, on name servers and brokers.

Source of the rule: the header classes of the same names (Java client 5.5.0); a request upstream sends
without any header class is named after its code.
"""

from typing import ClassVar

from rmqtools.errors import ProtocolError
from rmqtools.model.codes import RequestCode
from rmqtools.model.record import record
from rmqtools.protocol.headers.codec import Header, Int32, RequestHeader, TopicRequestHeader

_TOPIC_FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")


@record
class GetRouteInfoRequestHeader(TopicRequestHeader):
    """A topic's route, of a name server."""

    code: ClassVar[RequestCode] = RequestCode.GET_ROUTEINFO_BY_TOPIC

    topic: str
    accept_standard_json_only: bool | None = None


@record
class CreateTopicRequestHeader(TopicRequestHeader):
    """Create or change a topic on one broker."""

    code: ClassVar[RequestCode] = RequestCode.UPDATE_AND_CREATE_TOPIC

    topic: str
    default_topic: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_filter_type: str
    topic_sys_flag: Int32 | None = None
    order: bool
    attributes: str | None = None
    force: bool = False

    def check_decoded(self) -> None:
        """See :meth:`Header.check_decoded`."""
        if self.topic_filter_type not in _TOPIC_FILTER_TYPES:
            raise ProtocolError(f"CreateTopicRequestHeader.topic_filter_type is {self.topic_filter_type!r}")


@record
class DeleteTopicRequestHeader(TopicRequestHeader):
    """Delete a topic on one broker."""

    code: ClassVar[RequestCode] = RequestCode.DELETE_TOPIC_IN_BROKER

    topic: str


@record
class DeleteTopicFromNamesrvRequestHeader(TopicRequestHeader):
    """Delete a topic's route on one name server."""

    code: ClassVar[RequestCode] = RequestCode.DELETE_TOPIC_IN_NAMESRV

    topic: str
    cluster_name: str | None = None


@record
class GetTopicStatsInfoRequestHeader(TopicRequestHeader):
    """Smallest and largest offset of each queue of a topic on one broker."""

    code: ClassVar[RequestCode] = RequestCode.GET_TOPIC_STATS_INFO

    topic: str


@record
class GetTopicConfigRequestHeader(TopicRequestHeader):
    """The settings of a topic on one broker (5.x); the answer's body is TopicConfig."""

    code: ClassVar[RequestCode] = RequestCode.GET_TOPIC_CONFIG

    topic: str


@record
class GetAllTopicListRequestHeader(RequestHeader):
    """The names of all topics, of a name server."""

    code: ClassVar[RequestCode] = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER


@record
class GetTopicsByClusterRequestHeader(RequestHeader):
    """The names of a cluster's topics, of a name server."""

    code: ClassVar[RequestCode] = RequestCode.GET_TOPICS_BY_CLUSTER

    cluster: str


@record
class GetBrokerClusterInfoRequestHeader(RequestHeader):
    """All brokers and clusters, of a name server."""

    code: ClassVar[RequestCode] = RequestCode.GET_BROKER_CLUSTER_INFO


@record
class GetBrokerRuntimeInfoRequestHeader(RequestHeader):
    """A broker's statistics, as a table of texts."""

    code: ClassVar[RequestCode] = RequestCode.GET_BROKER_RUNTIME_INFO


@record
class GetBrokerConfigRequestHeader(RequestHeader):
    """A broker's settings; the body of the answer is a Java properties text."""

    code: ClassVar[RequestCode] = RequestCode.GET_BROKER_CONFIG


@record
class GetBrokerConfigResponseHeader(Header):
    """The version of a broker's settings."""

    version: str


@record
class UpdateBrokerConfigRequestHeader(RequestHeader):
    """Change a broker's settings; the body is a Java properties text."""

    code: ClassVar[RequestCode] = RequestCode.UPDATE_BROKER_CONFIG


@record
class PutKVConfigRequestHeader(RequestHeader):
    """Store a setting on one name server; name servers do not replicate settings."""

    code: ClassVar[RequestCode] = RequestCode.PUT_KV_CONFIG

    namespace: str
    key: str
    value: str


@record
class GetKVConfigRequestHeader(RequestHeader):
    """Read a setting of one name server."""

    code: ClassVar[RequestCode] = RequestCode.GET_KV_CONFIG

    namespace: str
    key: str


@record
class GetKVConfigResponseHeader(Header):
    """A setting's value."""

    value: str | None = None


@record
class DeleteKVConfigRequestHeader(RequestHeader):
    """Remove a setting from one name server."""

    code: ClassVar[RequestCode] = RequestCode.DELETE_KV_CONFIG

    namespace: str
    key: str


@record
class GetKVListByNamespaceRequestHeader(RequestHeader):
    """All settings of a namespace of one name server, as a table of texts."""

    code: ClassVar[RequestCode] = RequestCode.GET_KVLIST_BY_NAMESPACE

    namespace: str


@record
class WipeWritePermOfBrokerRequestHeader(RequestHeader):
    """Remove the write permission from all topics of a broker, in the route of one name server."""

    code: ClassVar[RequestCode] = RequestCode.WIPE_WRITE_PERM_OF_BROKER

    broker_name: str


@record
class WipeWritePermOfBrokerResponseHeader(Header):
    """The number of topics changed."""

    wipe_topic_count: Int32


@record
class AddWritePermOfBrokerRequestHeader(RequestHeader):
    """Restore the write permission."""

    code: ClassVar[RequestCode] = RequestCode.ADD_WRITE_PERM_OF_BROKER

    broker_name: str


@record
class AddWritePermOfBrokerResponseHeader(Header):
    """The number of topics restored."""

    add_topic_count: Int32
