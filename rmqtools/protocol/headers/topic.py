"""Headers of topics, routes and settings, on name servers and brokers.

Source of the rule: the header classes of the same names (Java client 5.5.0); a request upstream sends
without any header class is named after its code.
"""

from dataclasses import dataclass
from typing import ClassVar

from rmqtools.errors import ProtocolError
from rmqtools.model.codes import RequestCode
from rmqtools.protocol.headers.codec import Header, Int32, RequestHeader, TopicRequestHeader

_TOPIC_FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")


@dataclass(frozen=True, slots=True, kw_only=True)
class GetRouteInfoRequestHeader(TopicRequestHeader):
    """A topic's route, of a name server."""

    code: ClassVar[RequestCode] = RequestCode.GET_ROUTEINFO_BY_TOPIC

    topic: str
    accept_standard_json_only: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicRequestHeader(TopicRequestHeader):
    """Delete a topic on one broker."""

    code: ClassVar[RequestCode] = RequestCode.DELETE_TOPIC_IN_BROKER

    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteTopicFromNamesrvRequestHeader(TopicRequestHeader):
    """Delete a topic's route on one name server."""

    code: ClassVar[RequestCode] = RequestCode.DELETE_TOPIC_IN_NAMESRV

    topic: str
    cluster_name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GetTopicStatsInfoRequestHeader(TopicRequestHeader):
    """Smallest and largest offset of each queue of a topic on one broker."""

    code: ClassVar[RequestCode] = RequestCode.GET_TOPIC_STATS_INFO

    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetTopicConfigRequestHeader(TopicRequestHeader):
    """The settings of a topic on one broker (5.x); the answer's body is TopicConfig."""

    code: ClassVar[RequestCode] = RequestCode.GET_TOPIC_CONFIG

    topic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetAllTopicListRequestHeader(RequestHeader):
    """The names of all topics, of a name server."""

    code: ClassVar[RequestCode] = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER


@dataclass(frozen=True, slots=True, kw_only=True)
class GetTopicsByClusterRequestHeader(RequestHeader):
    """The names of a cluster's topics, of a name server."""

    code: ClassVar[RequestCode] = RequestCode.GET_TOPICS_BY_CLUSTER

    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetBrokerClusterInfoRequestHeader(RequestHeader):
    """All brokers and clusters, of a name server."""

    code: ClassVar[RequestCode] = RequestCode.GET_BROKER_CLUSTER_INFO


@dataclass(frozen=True, slots=True, kw_only=True)
class GetBrokerRuntimeInfoRequestHeader(RequestHeader):
    """A broker's statistics, as a table of texts."""

    code: ClassVar[RequestCode] = RequestCode.GET_BROKER_RUNTIME_INFO


@dataclass(frozen=True, slots=True, kw_only=True)
class GetBrokerConfigRequestHeader(RequestHeader):
    """A broker's settings; the body of the answer is a Java properties text."""

    code: ClassVar[RequestCode] = RequestCode.GET_BROKER_CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class GetBrokerConfigResponseHeader(Header):
    """The version of a broker's settings."""

    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateBrokerConfigRequestHeader(RequestHeader):
    """Change a broker's settings; the body is a Java properties text."""

    code: ClassVar[RequestCode] = RequestCode.UPDATE_BROKER_CONFIG


@dataclass(frozen=True, slots=True, kw_only=True)
class PutKVConfigRequestHeader(RequestHeader):
    """Store a setting on one name server; name servers do not replicate settings."""

    code: ClassVar[RequestCode] = RequestCode.PUT_KV_CONFIG

    namespace: str
    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetKVConfigRequestHeader(RequestHeader):
    """Read a setting of one name server."""

    code: ClassVar[RequestCode] = RequestCode.GET_KV_CONFIG

    namespace: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetKVConfigResponseHeader(Header):
    """A setting's value."""

    value: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteKVConfigRequestHeader(RequestHeader):
    """Remove a setting from one name server."""

    code: ClassVar[RequestCode] = RequestCode.DELETE_KV_CONFIG

    namespace: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetKVListByNamespaceRequestHeader(RequestHeader):
    """All settings of a namespace of one name server, as a table of texts."""

    code: ClassVar[RequestCode] = RequestCode.GET_KVLIST_BY_NAMESPACE

    namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WipeWritePermOfBrokerRequestHeader(RequestHeader):
    """Remove the write permission from all topics of a broker, in the route of one name server."""

    code: ClassVar[RequestCode] = RequestCode.WIPE_WRITE_PERM_OF_BROKER

    broker_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WipeWritePermOfBrokerResponseHeader(Header):
    """The number of topics changed."""

    wipe_topic_count: Int32


@dataclass(frozen=True, slots=True, kw_only=True)
class AddWritePermOfBrokerRequestHeader(RequestHeader):
    """Restore the write permission."""

    code: ClassVar[RequestCode] = RequestCode.ADD_WRITE_PERM_OF_BROKER

    broker_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AddWritePermOfBrokerResponseHeader(Header):
    """The number of topics restored."""

    add_topic_count: Int32
