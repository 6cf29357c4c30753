"""Push consumers while brokers and name servers are killed and come back."""

import threading

import pytest

from rmqtools import Admin, ClientConfig, Message, Producer, ProducerConfig
from rmqtools.errors import SendError
from tests.support.cluster_scene import wait_until
from tests.support.listening import Heard, listening
from tests.support.patience import PATIENCE
from tests.support.resting import RestingCluster

pytestmark = pytest.mark.broker

TOPIC = "Restarts"


@pytest.fixture(scope="module")
def own_cluster(tmp_path_factory):
    """A name server and a broker of this module's own, to be killed."""
    with RestingCluster(directory=tmp_path_factory.mktemp("cluster")) as cluster:
        with Admin(ClientConfig(name_server=cluster.name_server)) as admin:
            admin.create_topic(TOPIC, read_queue_nums=4, write_queue_nums=4)
        yield cluster


@pytest.fixture
def sending(own_cluster):
    """Sends numbered messages all the time; ``stop()`` returns what was acknowledged."""
    over, sent = threading.Event(), []
    config = ProducerConfig(name_server=own_cluster.name_server, send_timeout=10.0)

    def run() -> None:
        with Producer(config) as producer:
            number = 0
            while not over.wait(0.002):
                number += 1
                body = b"%d" % number
                try:
                    producer.send(Message(TOPIC, body))
                except SendError:
                    continue
                sent.append(body)

    def stop() -> set[bytes]:
        over.set()
        thread.join(PATIENCE)
        return set(sent)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    wait_until(lambda: len(sent) > 50)
    yield stop
    stop()


@pytest.mark.parametrize(
    "orderly",
    [pytest.param(False, id="concurrently"), pytest.param(True, id="orderly", marks=pytest.mark.slow)],
)
def test_while_a_broker_is_killed_and_started_nothing_is_lost(own_cluster, sending, orderly):
    heard = Heard()
    with listening(own_cluster.name_server, TOPIC, heard, orderly=orderly, delay_after_error=0.5):
        heard.wait(50)
        own_cluster.kill_server("broker-a")
        own_cluster.start_server("broker-a")
        before = len(heard.messages)
        heard.wait(before + 50)
        sent = sending()
        wait_until(lambda: sent <= set(heard.bodies))


def test_while_the_name_server_is_away_consuming_goes_on_and_new_topics_are_found_afterwards(
    own_cluster, sending
):
    heard, late = Heard(), Heard()
    with listening(own_cluster.name_server, TOPIC, heard, poll_name_server_interval=0.5) as consumer:
        heard.wait(50)
        own_cluster.kill_server("namesrv")
        heard.wait(len(heard.messages) + 50)
        consumer.subscribe("AfterAll", late)
        own_cluster.start_server("namesrv")
        sent = sending()
        with Admin(ClientConfig(name_server=own_cluster.name_server)) as admin:
            wait_until(lambda: admin.fetch_cluster_info().broker_addr_table)
            admin.create_topic("AfterAll", read_queue_nums=1, write_queue_nums=1)
        with Producer(ProducerConfig(name_server=own_cluster.name_server)) as producer:
            producer.send(Message("AfterAll", b"x"))
        late.wait(1)
        wait_until(lambda: sent <= set(heard.bodies))
