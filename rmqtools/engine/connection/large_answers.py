"""Finds which requests to a proxy have large answers: only one of them is on the wire on a connection.

A proxy 5.5.0 drops an answer while 64 KB of earlier ones wait on the connection; its client waits in vain.
The answers to a pull and to a batch may be that large, so only one of them is on the wire. Requests whose
answers have less than 1 KB wait for nobody: thousands of sends would use up their time in a line. Pulls that
the proxy holds until messages come (long polls) do not either: they would keep others back for seconds.

Source of the rule: AbstractRemotingActivity.writeResponse (proxy 5.5.0).
"""

from rmqtools.model.codes import RequestCode
from rmqtools.model.sys_flag import PullSysFlag
from rmqtools.protocol.wire.template import Request

_SMALL = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.QUERY_CONSUMER_OFFSET,
        RequestCode.UPDATE_CONSUMER_OFFSET,
        RequestCode.GET_MAX_OFFSET,
        RequestCode.GET_MIN_OFFSET,
        RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
        RequestCode.END_TRANSACTION,
        RequestCode.RECALL_MESSAGE,
        RequestCode.HEART_BEAT,
        RequestCode.UNREGISTER_CLIENT,
        RequestCode.CHECK_CLIENT_CONFIG,
    }
)


def may_answer_large(request: Request) -> bool:
    """Return whether the request has to wait for its turn: its answer may be large, and is not held back."""
    if request.code in _SMALL:
        return False
    if request.code == RequestCode.PULL_MESSAGE:
        flag = request.command().ext_fields.get("sysFlag") or "0"
        return not (flag.isdecimal() and int(flag) & PullSysFlag.FLAG_SUSPEND)
    return True
