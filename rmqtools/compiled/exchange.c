/* One request and its answer on a blocking socket, for rmqtools.engine.connection.blocking_connection.

Not a twin, since it has an effect, but it raises nothing either: it says how far it came, and Python goes on. */

#include "shape.h"

#ifndef _WIN32
#include <sys/socket.h>
#endif

enum { ANSWER_BYTES = 16 * 1024 }; /* of one socket call; answers to sends have some 300, and 33 a message */

#ifdef _WIN32
PyMethodDef exchange_methods[] = {{NULL, NULL, 0, NULL}};
#else

/* exchange(fd: int, data: bytes, is_used: bool) -> bytes | int

Send what the socket takes at once and then receive, once, releasing the GIL once for both: with many threads
each release costs a wait. bytes: all was sent, and these came (none: the peer has ended). int: so
many bytes were sent, and nothing was received, for any reason. -1: is_used, and something is there to be received already:
nothing was sent. */
static PyObject *exchange(PyObject *Py_UNUSED(module), Arguments given, Py_ssize_t count)
{
    char answer[ANSWER_BYTES], unexpected;
    if (count != 3 || !PyLong_Check(given[0]) || !PyBytes_Check(given[1]))
        return PyLong_FromLong(0);
    int fd = (int)PyLong_AsLong(given[0]);
    const char *data = PyBytes_AsString(given[1]);
    Py_ssize_t length = PyBytes_Size(given[1]), sent = -1, received = -1;
    int is_used = given[2] == Py_True, is_quiet = 1;
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return PyLong_FromLong(0);
    }
    Py_BEGIN_ALLOW_THREADS
    if (is_used)
        is_quiet = recv(fd, &unexpected, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
    if (is_quiet)
        sent = send(fd, data, (size_t)length, MSG_DONTWAIT);
    if (sent == length)
        received = recv(fd, answer, sizeof answer, 0);
    Py_END_ALLOW_THREADS
    if (received >= 0)
        return PyBytes_FromStringAndSize(answer, received);
    return PyLong_FromSsize_t(!is_quiet ? -1 : sent > 0 ? sent : 0);
}

PyMethodDef exchange_methods[] = {
    {"exchange", (PyCFunction)(void (*)(void))exchange, METH_FASTCALL, "Send, then receive."},
    {NULL, NULL, 0, NULL},
};
#endif
