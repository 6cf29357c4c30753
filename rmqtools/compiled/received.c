/* Twins for what is received: stored messages and their properties.

The originals: rmqtools.protocol.messages.stored (which draws the format) and .properties. */

#include "shape.h"

enum { HEAD_BYTES = 88, SIZE_BYTES = 4, MAGIC_AT = 4, OFFSET_AT = 20, SYS_FLAG_AT = 36, BORN_PORT_AT = 52, STORE_PORT_AT = 68,
       BODY_LENGTH_AT = 84 };
enum { MAGIC_V1 = -626843481, MAGIC_V2 = -626843477 };
enum { COMPRESSED_FLAG = 1, V6_FLAGS = 0x30, MAX_PORT = 0xFFFF };

enum { TOPIC, QUEUE_OFFSET, BODY, BROKER_NAME, FILLERS, HEAD, PROPERTIES };
static const char *const message_slots[] = {"topic", "queue_offset", "body", "broker_name", "_fillers", "_head",
                                            "_properties", NULL};
static Shape message_ext;

/* Where the parts of one stored message are. */
typedef struct {
    const unsigned char *head, *body, *topic, *properties;
    Py_ssize_t body_bytes, topic_bytes, properties_bytes;
} Stored;

/* Find the parts of the message at start; 0: it is not plain. */
static int find_stored(Stored *found, const unsigned char *data, Py_ssize_t length, Py_ssize_t start,
                       int decompresses)
{
    if (start < 0 || start > length - HEAD_BYTES)
        return 0;
    const unsigned char *at = found->head = data + start;
    int32_t size = read_i32(at), magic = read_i32(at + MAGIC_AT), sys_flag = read_i32(at + SYS_FLAG_AT);
    int32_t body_bytes = read_i32(at + BODY_LENGTH_AT);
    if (size < HEAD_BYTES || size > length - start || (magic != MAGIC_V1 && magic != MAGIC_V2))
        return 0;
    if (sys_flag & V6_FLAGS || (decompresses && sys_flag & COMPRESSED_FLAG && body_bytes > 0))
        return 0;
    if ((uint32_t)read_i32(at + BORN_PORT_AT) > MAX_PORT || (uint32_t)read_i32(at + STORE_PORT_AT) > MAX_PORT)
        return 0;
    const unsigned char *end = at + size;
    int length_bytes = magic == MAGIC_V1 ? 1 : 2;
    found->body = at + HEAD_BYTES;
    if (body_bytes < 0 || body_bytes > end - found->body - length_bytes)
        return 0;
    at = found->body + (found->body_bytes = body_bytes);
    found->topic_bytes = magic == MAGIC_V1 ? (int8_t)at[0] : read_i16(at);
    found->topic = at + length_bytes;
    if (found->topic_bytes < 0 || found->topic_bytes > end - found->topic - 2)
        return 0;
    at = found->topic + found->topic_bytes;
    found->properties_bytes = read_i16(at);
    found->properties = at + 2;
    return found->properties_bytes >= 0 && found->properties_bytes <= end - found->properties;
}

static PyObject *bytes_of(const unsigned char *at, Py_ssize_t count)
{
    return PyBytes_FromStringAndSize((const char *)at, count);
}

static PyObject *message_of(const Stored *stored, PyObject *topic, PyObject *broker_name, PyObject *fillers)
{
    const Shape *shape = &message_ext;
    PyObject *message = new_object(shape);
    if (message == NULL)
        return NULL;
    put(shape, message, TOPIC, topic);
    put(shape, message, BROKER_NAME, broker_name);
    put(shape, message, FILLERS, fillers);
    if (put_new(shape, message, QUEUE_OFFSET, PyLong_FromLongLong(read_i64(stored->head + OFFSET_AT))) < 0
        || put_new(shape, message, BODY, bytes_of(stored->body, stored->body_bytes)) < 0
        || put_new(shape, message, HEAD, bytes_of(stored->head, HEAD_BYTES)) < 0
        || put_new(shape, message, PROPERTIES, bytes_of(stored->properties, stored->properties_bytes)) < 0) {
        Py_DECREF(message);
        return NULL;
    }
    return message;
}

/* Stored messages that are decoded together, and the topic of the message before. */
typedef struct {
    const unsigned char *data, *topic_at;
    Py_ssize_t length, topic_bytes;
    PyObject *broker_name, *fillers, *topic;
    int decompresses;
} Portion;

/* Make the topic of a message the portion's; 0: an exception is set. */
static int take_topic(Portion *portion, const Stored *stored)
{
    if (portion->topic != NULL && stored->topic_bytes == portion->topic_bytes
        && memcmp(stored->topic, portion->topic_at, (size_t)stored->topic_bytes) == 0)
        return 1;
    Py_XDECREF(portion->topic);
    portion->topic_at = stored->topic, portion->topic_bytes = stored->topic_bytes;
    portion->topic = PyUnicode_DecodeUTF8((const char *)stored->topic, stored->topic_bytes, "replace");
    return portion->topic != NULL;
}

/* The message at a place; NULL: it is not plain, or an exception is set. */
static PyObject *message_at(Portion *portion, PyObject *place)
{
    Stored stored;
    Py_ssize_t start = place == NULL ? -1 : PyLong_AsSsize_t(place);
    if (!find_stored(&stored, portion->data, portion->length, start, portion->decompresses)
        || !take_topic(portion, &stored))
        return NULL;
    return message_of(&stored, portion->topic, portion->broker_name, portion->fillers);
}

static PyObject *decode_all(Portion *portion, PyObject *starts)
{
    Py_ssize_t count = PyList_Size(starts);
    PyObject *messages = hidden_list(count);
    for (Py_ssize_t number = 0; messages != NULL && number < count; number++) {
        PyObject *message = message_at(portion, PyList_GetItem(starts, number));
        if (message == NULL || PyList_SetItem(messages, number, message) < 0)
            Py_CLEAR(messages);
    }
    Py_XDECREF(portion->topic);
    return messages == NULL ? not_plain_or_failed() : show_list(messages);
}

/* decode_plain(data: bytes, starts: list[int], broker_name: str, fillers, decompresses: bool) */
static PyObject *decode_plain(PyObject *Py_UNUSED(module), Arguments given, Py_ssize_t count)
{
    if (count != 5 || message_ext.type == NULL || !PyBytes_Check(given[0]) || !is_exactly(given[1], &PyList_Type))
        return not_plain();
    Portion portion = {
        .data = (const unsigned char *)PyBytes_AsString(given[0]), .length = PyBytes_Size(given[0]),
        .broker_name = given[2], .fillers = given[3], .decompresses = given[4] == Py_True,
    };
    return decode_all(&portion, given[1]);
}

static PyObject *bind_message_ext(PyObject *Py_UNUSED(module), PyObject *type)
{
    int bound = bind_shape(&message_ext, type, message_slots);
    return bound < 0 ? NULL : PyBool_FromLong(bound);
}

/* follow_sizes(data, base: int, smallest: int) -> (list[int], int) */
static PyObject *follow_sizes(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    Py_buffer view;
    Py_ssize_t base, smallest, start = 0;
    if (!PyArg_ParseTuple(arguments, "y*nn", &view, &base, &smallest))
        return NULL;
    if (smallest < SIZE_BYTES || base > PY_SSIZE_T_MAX - view.len) {
        PyBuffer_Release(&view);
        return PyErr_Format(PyExc_OverflowError, "base %zd or size %zd is impossible", base, smallest);
    }
    PyObject *starts = PyList_New(0);
    while (starts != NULL && start <= view.len - smallest) {
        int32_t size = read_i32((const unsigned char *)view.buf + start);
        if (size < smallest)
            break;
        PyObject *place = PyLong_FromSsize_t(base + start);
        if (place == NULL || PyList_Append(starts, place) < 0)
            Py_CLEAR(starts);
        Py_XDECREF(place);
        start += size;
    }
    PyBuffer_Release(&view);
    return starts == NULL ? NULL : Py_BuildValue("Nn", starts, start);
}

/* Names that came lately. Most messages and answers have the same few. */
enum { KEPT_NAMES = 128, LONGEST_KEPT_NAME = 40 };
static PyObject *kept_names[KEPT_NAMES];

PyObject *known_name(const char *at, Py_ssize_t length)
{
    if (length > LONGEST_KEPT_NAME)
        return PyUnicode_DecodeUTF8(at, length, "replace");
    unsigned hash = (unsigned)length;
    for (Py_ssize_t place = 0; place < length; place++)
        hash = hash * 31 + (unsigned char)at[place];
    PyObject **kept = &kept_names[hash % KEPT_NAMES];
    if (*kept != NULL) {
        Py_ssize_t kept_length;
        const char *text = PyUnicode_AsUTF8AndSize(*kept, &kept_length);
        if (text != NULL && kept_length == length && memcmp(text, at, (size_t)length) == 0)
            return Py_NewRef(*kept);
    }
    PyObject *name = PyUnicode_DecodeUTF8(at, length, "replace");
    if (name != NULL) {
        Py_XDECREF(*kept);
        *kept = Py_NewRef(name);
    }
    return name;
}

/* Put one pair into the dictionary, unless it lacks its name, its value or what separates them. */
static int put_pair(PyObject *properties, const char *at, const char *end)
{
    const char *separator = memchr(at, '\x01', (size_t)(end - at));
    if (separator == NULL || separator == at || separator + 1 == end)
        return 0;
    PyObject *name = known_name(at, separator - at);
    if (name == NULL)
        return -1;
    PyObject *value = PyUnicode_DecodeUTF8(separator + 1, end - separator - 1, "replace");
    int failed = value == NULL ? -1 : PyDict_SetItem(properties, name, value);
    Py_DECREF(name);
    Py_XDECREF(value);
    return failed;
}

/* decode_properties(data: bytes) -> dict[str, str] */
static PyObject *decode_properties(PyObject *Py_UNUSED(module), PyObject *data)
{
    char *at;
    Py_ssize_t length;
    if (PyBytes_AsStringAndSize(data, &at, &length) < 0)
        return NULL;
    PyObject *properties = PyDict_New();
    for (const char *end = at + length; properties != NULL && at < end;) {
        char *pair_end = memchr(at, '\x02', (size_t)(end - at));
        if (pair_end == NULL)
            pair_end = at + (end - at);
        if (put_pair(properties, at, pair_end) < 0)
            Py_CLEAR(properties);
        at = pair_end + 1;
    }
    return properties;
}

PyMethodDef received_methods[] = {
    {"bind_message_ext", bind_message_ext, METH_O, "Say which class decode_plain makes."},
    {"decode_plain", (PyCFunction)(void (*)(void))decode_plain, METH_FASTCALL, "Twin of stored._decode."},
    {"follow_sizes", follow_sizes, METH_VARARGS, "Twin of stored._follow_sizes."},
    {"decode_properties", decode_properties, METH_O, "Twin of properties.decode_properties."},
    {NULL, NULL, 0, NULL},
};
