"""Changes of topics while a name server does not answer."""

import pytest

from rmqtools.errors import RemotingError
from rmqtools.testing import FakeCluster, Reaction, RequestCode


@pytest.fixture
def cluster():
    with FakeCluster(name_servers=2) as cluster:
        cluster.create_topic("orders", queues=1)
        yield cluster


def test_a_topic_is_deleted_at_the_other_name_servers_where_one_does_not_answer(cluster, admin):
    cluster.fault(code=RequestCode.DELETE_TOPIC_IN_NAMESRV, answer=Reaction.DISCONNECT)

    with pytest.raises(RemotingError, match=r"^1 of 2 name servers may not have the change: .* repeat it"):
        admin.delete_topic("orders")

    assert len(cluster.requests(code=RequestCode.DELETE_TOPIC_IN_NAMESRV)) == 2
