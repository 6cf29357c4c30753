"""The names of ``rocketmq.consts``."""

from enum import Enum

from rmqtools.model import message_const


class MessageProperty(Enum):
    """Properties that RocketMQ itself sets; each value is the name in a stored message."""

    TRACE_SWITCH = message_const.PROPERTY_TRACE_SWITCH
    MSG_REGION = message_const.PROPERTY_MSG_REGION
    KEYS = message_const.PROPERTY_KEYS
    TAGS = message_const.PROPERTY_TAGS
    WAIT_STORE_MSG_OK = message_const.PROPERTY_WAIT_STORE_MSG_OK
    DELAY_TIME_LEVEL = message_const.PROPERTY_DELAY_TIME_LEVEL
    RETRY_TOPIC = message_const.PROPERTY_RETRY_TOPIC
    REAL_TOPIC = message_const.PROPERTY_REAL_TOPIC
    REAL_QUEUE_ID = message_const.PROPERTY_REAL_QUEUE_ID
    TRANSACTION_PREPARED = message_const.PROPERTY_TRANSACTION_PREPARED
    PRODUCER_GROUP = message_const.PROPERTY_PRODUCER_GROUP
    MIN_OFFSET = message_const.PROPERTY_MIN_OFFSET
    MAX_OFFSET = message_const.PROPERTY_MAX_OFFSET
    BUYER_ID = message_const.PROPERTY_BUYER_ID
    ORIGIN_MESSAGE_ID = message_const.PROPERTY_ORIGIN_MESSAGE_ID
    TRANSFER_FLAG = message_const.PROPERTY_TRANSFER_FLAG
    CORRECTION_FLAG = message_const.PROPERTY_CORRECTION_FLAG
    MQ2_FLAG = message_const.PROPERTY_MQ2_FLAG
    RECONSUME_TIME = message_const.PROPERTY_RECONSUME_TIME
    UNIQ_CLIENT_MESSAGE_ID_KEYIDX = message_const.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX
    MAX_RECONSUME_TIMES = message_const.PROPERTY_MAX_RECONSUME_TIMES
    CONSUME_START_TIMESTAMP = message_const.PROPERTY_CONSUME_START_TIMESTAMP
