"""Missing topics of writes, on the cluster in this process."""

import pyarrow as pa
import pytest

from rmqtools.errors import TopicNotFoundError
from spark_connector.write.topics import check_topic, check_topics
from tests.support.spark_options import write_of


def options(cluster, **given):
    return write_of(nameServer=cluster.name_server, createTopic="false", **given)


def test_a_missing_topic_is_refused_with_the_one_of_a_similar_name_if_there_is_one(cluster):
    text = r"topic 'ordres' does not exist \(did you mean 'orders'\?\) and option 'createTopic' is false"
    hintless = r"topic 'x' does not exist and option 'createTopic' is false"
    batch = pa.record_batch({"topic": ["orders", "ordres"]})

    with pytest.raises(TopicNotFoundError, match=text):
        check_topic(options(cluster, topic="ordres"))
    with pytest.raises(TopicNotFoundError, match=text):
        list(check_topics(options(cluster), [batch]))
    with pytest.raises(TopicNotFoundError, match=hintless):
        check_topic(options(cluster, topic="x"))
