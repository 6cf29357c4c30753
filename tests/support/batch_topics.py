"""Answers to the question for a topic's settings (GET_TOPIC_CONFIG), as brokers 5.5.0 write them."""

from rmqtools.model.codes import RequestCode, ResponseCode
from rmqtools.protocol.wire.command import RemotingCommand, response
from tests.support.scripted_peer import Script


def _config(attributes: str) -> RemotingCommand:
    text = (
        f'{{"attributes":{attributes},"order":false,"perm":6,"readQueueNums":1,"topicFilterType":"SINGLE_TAG",'
        '"topicName":"T","topicSysFlag":0,"writeQueueNums":1}'
    )
    return response(ResponseCode.SUCCESS, 0, body=text.encode())


BATCH_CONFIG = _config('{"queue.type":"BatchCQ"}')
NORMAL_CONFIG = _config("{}")


def keeping_batches(answer: Script) -> Script:
    """``answer``, of a broker whose topics all have the queue type BatchCQ."""

    def answers(request: RemotingCommand) -> RemotingCommand | bytes | None:
        return BATCH_CONFIG if request.code == RequestCode.GET_TOPIC_CONFIG else answer(request)

    return answers
