/* Twins for what is sent: making messages, checking them, encoding them, and the results of their sends.

The originals: rmqtools.model.message.Message, rmqtools.policy.validate, rmqtools.engine.producer.encode_send,
rmqtools.protocol.messages.batch (which draws the format) and rmqtools.engine.producer.send_answer.

One file because every step reads the slots of one class, Message, whose places in memory are found once, below. */

#include "shape.h"

enum { TOPIC, BODY, TAGS, KEYS, PROPERTIES, FLAG, SHARDING_KEY, DELAY_LEVEL, DELAY, DELIVER_AT, PRIORITY, FIELDS };
static const char *const message_slots[] = {"topic", "body", "tags", "keys", "properties", "flag", "sharding_key",
                                            "delay_level", "delay", "deliver_at_ms", "priority", NULL};
static Shape message;
static PyObject *message_init;        /* the original */
static PyObject *field_names[FIELDS]; /* interned */
static PyObject *no_keys, *zero;      /* default values */

enum { BATCH_HEAD_BYTES = 20, BATCH_FIXED_BYTES = 22, MAX_PROPERTIES_BYTES = 0x7FFF };
enum { ID_DIGITS = 4 };

/* ---- Making a message ---- */

/* The default value of a field that has one and the same for all messages, borrowed. */
static PyObject *default_of(int field)
{
    switch (field) {
    case KEYS:
        return no_keys;
    case FLAG:
    case DELAY_LEVEL:
        return zero;
    default:
        return Py_None;
    }
}

/* The fields that a call gives, borrowed, the object first; 0: too many, an unknown one, or two values for one. */
static int take_fields(PyObject **values, PyObject *given, PyObject *named)
{
    Py_ssize_t count = PyTuple_Size(given) - 1, place = 0;
    PyObject *name, *value;
    if (count > FIELDS)
        return 0;
    for (Py_ssize_t field = 0; field < count; field++)
        values[field] = PyTuple_GetItem(given, field + 1);
    while (named != NULL && PyDict_Next(named, &place, &name, &value)) {
        Py_ssize_t field = field_named(field_names, FIELDS, name);
        if (field < 0 || values[field] != NULL)
            return 0;
        values[field] = value;
    }
    return values[TOPIC] != NULL && values[BODY] != NULL;
}

/* A new dictionary last: making it may start the garbage collector, and its callbacks run any code. */
static PyObject *put_fields(PyObject *one, PyObject *const *values)
{
    for (int field = 0; field < FIELDS; field++)
        if (values[field] != NULL)
            put(&message, one, field, values[field]);
        else if (field != PROPERTIES)
            put(&message, one, field, default_of(field));
    if (values[PROPERTIES] == NULL && put_new(&message, one, PROPERTIES, PyDict_New()) < 0)
        return NULL;
    return Py_NewRef(Py_None);
}

static PyObject *init_message(PyObject *Py_UNUSED(self), PyObject *given, PyObject *named)
{
    PyObject *values[FIELDS] = {NULL};
    PyObject *one = PyTuple_Size(given) > 0 ? PyTuple_GetItem(given, 0) : NULL;
    if (one == NULL || !PyObject_TypeCheck(one, message.type) || !take_fields(values, given, named))
        return PyObject_Call(message_init, given, named);
    return put_fields(one, values);
}

/* Whoever asks for Message.__init__ gets the original, which has a signature and annotations. */
static PyObject *get_init(PyObject *Py_UNUSED(self), PyObject *one, PyObject *type)
{
    if (one == NULL)
        return Py_NewRef(message_init);
    return PyObject_CallMethod(message_init, "__get__", "OO", one, type == NULL ? Py_None : type);
}

/* Making a message calls this without asking for it: it is a method descriptor. */
static PyType_Slot init_slots[] = {{Py_tp_call, init_message}, {Py_tp_descr_get, get_init}, {0, NULL}};
static PyType_Spec init_spec = {
    .name = "rmqtools.compiled._twins.MessageInit", .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_METHOD_DESCRIPTOR, .slots = init_slots,
};

/* Make what does not depend on the class; NULL: an exception is set. */
static PyObject *new_init(void)
{
    for (int field = 0; field < FIELDS; field++)
        if (field_names[field] == NULL && (field_names[field] = PyUnicode_InternFromString(message_slots[field])) == NULL)
            return NULL;
    if ((no_keys == NULL && (no_keys = PyTuple_New(0)) == NULL) || (zero == NULL && (zero = PyLong_FromLong(0)) == NULL))
        return NULL;
    PyObject *type = PyType_FromSpec(&init_spec);
    PyObject *made = type == NULL ? NULL : PyType_GenericAlloc((PyTypeObject *)type, 0);
    Py_XDECREF(type);
    return made;
}

/* bind_message(class, init) -> the twin of its __init__; None: there is a class already */
static PyObject *bind_message(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *type, *init;
    if (!PyArg_ParseTuple(arguments, "OO", &type, &init))
        return NULL;
    PyObject *made = new_init();
    int bound = made == NULL ? -1 : bind_shape(&message, type, message_slots);
    if (bound > 0) {
        message_init = Py_NewRef(init);
        return made;
    }
    Py_XDECREF(made);
    return bound < 0 ? NULL : not_plain();
}

/* ---- The texts of a message ---- */

/* The bytes of a text that may be in a property; NULL: it may not, or only the original can tell. */
static const char *plain_text(PyObject *text, Py_ssize_t *length)
{
    if (!is_exactly(text, &PyUnicode_Type))
        return NULL;
    const char *at = PyUnicode_AsUTF8AndSize(text, length);
    if (at == NULL) {
        PyErr_Clear(); /* a lone surrogate */
        return NULL;
    }
    for (Py_ssize_t place = 0; place < *length; place++)
        if (at[place] == '\x01' || at[place] == '\x02')
            return NULL;
    return at;
}

static int write_pair(Writer *writer, const char *name, Py_ssize_t name_length, PyObject *value)
{
    Py_ssize_t length;
    const char *text = plain_text(value, &length);
    if (text == NULL)
        return 0;
    if (length > 0) {
        write_to(writer, name, name_length);
        write_to(writer, "\x01", 1);
        write_to(writer, text, length);
        write_to(writer, "\x02", 1);
    }
    return 1;
}

static int write_keys(Writer *writer, PyObject *keys)
{
    if (is_exactly(keys, &PyUnicode_Type))
        return write_pair(writer, "KEYS", 4, keys);
    int is_list = is_exactly(keys, &PyList_Type);
    if (!is_list && !is_exactly(keys, &PyTuple_Type))
        return 0;
    Py_ssize_t count = is_list ? PyList_Size(keys) : PyTuple_Size(keys), joined = count - 1, length;
    for (Py_ssize_t number = 0; number < count; number++) {
        const char *text = plain_text(is_list ? PyList_GetItem(keys, number) : PyTuple_GetItem(keys, number), &length);
        if (text == NULL || memchr(text, ' ', (size_t)length) != NULL) /* a blank separates keys */
            return 0;
        joined += length;
    }
    if (joined <= 0)
        return 1;
    write_to(writer, "KEYS\x01", 5);
    for (Py_ssize_t number = 0; number < count; number++) {
        PyObject *key = is_list ? PyList_GetItem(keys, number) : PyTuple_GetItem(keys, number);
        const char *text = PyUnicode_AsUTF8AndSize(key, &length);
        if (number > 0)
            write_to(writer, " ", 1);
        write_to(writer, text, length);
    }
    write_to(writer, "\x02", 1);
    return 1;
}

static int write_tags(Writer *writer, PyObject *tags)
{
    Py_ssize_t length;
    const char *text = plain_text(tags, &length);
    if (text == NULL)
        return 0;
    if (length > 0 && ((unsigned char)text[0] <= ' ' || (unsigned char)text[length - 1] <= ' ')) /* _TRIMMED */
        return 0;
    for (Py_ssize_t place = 1; place < length; place++)
        if (text[place - 1] == '|' && text[place] == '|')
            return 0;
    return write_pair(writer, "TAGS", 4, tags);
}

/* Whether a set has a text. What is in the set should be plain text too; else comparing may run any code, in which the
   text could lose its last owner. -1: the comparison has failed. */
static int has_text(PyObject *set, PyObject *text)
{
    Py_INCREF(text);
    int found = PySet_Contains(set, text);
    Py_DECREF(text);
    if (found < 0)
        PyErr_Clear();
    return found;
}

/* Whether no name of properties is reserved. */
static int are_free(PyObject *properties, PyObject *reserved)
{
    PyObject *name, *value;
    Py_ssize_t place = 0;
    while (PyDict_Next(properties, &place, &name, &value))
        if (!is_exactly(name, &PyUnicode_Type) || has_text(reserved, name) != 0)
            return 0;
    return 1;
}

static int write_properties(Writer *writer, PyObject *properties)
{
    PyObject *name, *value;
    Py_ssize_t place = 0, name_length, value_length;
    while (PyDict_Next(properties, &place, &name, &value)) {
        const char *name_text = plain_text(name, &name_length), *value_text = plain_text(value, &value_length);
        if (name_text == NULL || value_text == NULL || name_length == 0 || value_length == 0)
            return 0;
        write_to(writer, name_text, name_length);
        write_to(writer, "\x01", 1);
        write_to(writer, value_text, value_length);
        write_to(writer, "\x02", 1);
    }
    return 1;
}

/* The texts of a message as property_text of encode_send has them; 0: not plain. */
static int write_texts(Writer *writer, PyObject *one)
{
    PyObject *properties = get(&message, one, PROPERTIES), *keys = get(&message, one, KEYS);
    PyObject *tags = get(&message, one, TAGS), *sharding_key = get(&message, one, SHARDING_KEY);
    return properties != NULL && keys != NULL && tags != NULL && sharding_key != NULL
           && is_exactly(properties, &PyDict_Type) && write_properties(writer, properties) && write_keys(writer, keys)
           && (tags == Py_None || write_tags(writer, tags))
           && (sharding_key == Py_None || write_pair(writer, "__SHARDINGKEY", 13, sharding_key));
}

/* ---- Checking ---- */

/* What messages are checked against. */
typedef struct {
    Py_ssize_t max_body_bytes, max_texts_bytes;
    PyObject *known_topics, *reserved;
    PyObject *topic; /* of the message before, borrowed: known, and the only one so far; NULL: there is none */
} Limits;

static int has_plain_topic(PyObject *one, Limits *limits)
{
    PyObject *topic = get(&message, one, TOPIC);
    if (topic == limits->topic && topic != NULL)
        return 1;
    if (topic == NULL || !is_exactly(topic, &PyUnicode_Type) || has_text(limits->known_topics, topic) != 1)
        return 0;
    limits->topic = topic;
    return 1;
}

static int has_free_names(PyObject *one, PyObject *reserved)
{
    PyObject *properties = get(&message, one, PROPERTIES);
    if (properties == NULL || !is_exactly(properties, &PyDict_Type))
        return 0;
    Py_INCREF(properties);
    int is_free = are_free(properties, reserved);
    Py_DECREF(properties);
    return is_free;
}

/* The bytes of a plain body; -1: it is not plain. */
static Py_ssize_t body_bytes(PyObject *one, const char **at)
{
    PyObject *body = get(&message, one, BODY);
    if (body == NULL || !is_exactly(body, &PyBytes_Type))
        return -1;
    *at = PyBytes_AsString(body);
    return PyBytes_Size(body);
}

/* The value of a plain flag; *is_plain: whether it is one. */
static int32_t flag_of(PyObject *one, int *is_plain)
{
    PyObject *flag = get(&message, one, FLAG);
    int overflow = 0;
    long value = 0;
    *is_plain = flag != NULL && is_exactly(flag, &PyLong_Type);
    if (*is_plain)
        value = PyLong_AsLongAndOverflow(flag, &overflow);
    *is_plain = *is_plain && !overflow && value >= INT32_MIN && value <= INT32_MAX;
    return (int32_t)value;
}

/* Whether an object is Message itself, without delay and priority. */
static int is_plain_kind(PyObject *one)
{
    return is_exactly(one, message.type) && get(&message, one, DELAY_LEVEL) == zero
           && get(&message, one, DELAY) == Py_None && get(&message, one, DELIVER_AT) == Py_None
           && get(&message, one, PRIORITY) == Py_None;
}

/* The bytes of the texts and the body of a message within the limits, which is Message itself without delay and
   priority; -1: it is not plain, or not allowed. */
static Py_ssize_t allowed_bytes(PyObject *one, Limits *limits)
{
    const char *body;
    int is_plain;
    Writer measured = {.start = NULL};
    if (!is_exactly(one, message.type) || !has_plain_topic(one, limits) || !has_free_names(one, limits->reserved)
        || !is_plain_kind(one))
        return -1;
    Py_ssize_t bytes = body_bytes(one, &body);
    flag_of(one, &is_plain);
    if (!is_plain || bytes <= 0 || bytes > limits->max_body_bytes)
        return -1;
    if (!write_texts(&measured, one) || measured.bytes > limits->max_texts_bytes)
        return -1;
    return bytes + measured.bytes;
}

static int take_limits(Limits *limits, Arguments given)
{
    limits->max_body_bytes = PyLong_AsSsize_t(given[0]);
    limits->max_texts_bytes = PyLong_AsSsize_t(given[1]);
    limits->known_topics = given[2];
    limits->reserved = given[3];
    limits->topic = NULL;
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return message.type != NULL && PyAnySet_Check(limits->known_topics) && PyAnySet_Check(limits->reserved);
}

/* allowed_size(message, max_body_bytes, max_texts_bytes, known_topics: set, reserved: set) -> int | None */
static PyObject *allowed_size(PyObject *Py_UNUSED(module), Arguments given, Py_ssize_t count)
{
    Limits limits;
    Py_ssize_t bytes = count == 5 && take_limits(&limits, given + 1) ? allowed_bytes(given[0], &limits) : -1;
    return bytes < 0 ? not_plain() : PyLong_FromSsize_t(bytes);
}

/* allowed_bytes of a message of a list, which has as many as before unless comparing texts has run any code. */
static Py_ssize_t allowed_bytes_at(PyObject *messages, Py_ssize_t number, Limits *limits)
{
    PyObject *one = PyList_GetItem(messages, number);
    if (one == NULL)
        return -1;
    Py_INCREF(one);
    Py_ssize_t bytes = allowed_bytes(one, limits);
    Py_DECREF(one);
    return bytes;
}

/* The size of each message: allowed_bytes and so many bytes more; None: one is not plain or not allowed. */
static PyObject *sizes_of(PyObject *messages, Limits *limits, Py_ssize_t fixed)
{
    Py_ssize_t length = PyList_Size(messages);
    PyObject *sizes = hidden_list(length);
    for (Py_ssize_t number = 0; sizes != NULL && number < length; number++) {
        Py_ssize_t bytes = allowed_bytes_at(messages, number, limits);
        PyObject *size = bytes < 0 ? NULL : PyLong_FromSsize_t(fixed + bytes);
        if (size == NULL || PyList_SetItem(sizes, number, size) < 0)
            Py_CLEAR(sizes);
    }
    return sizes == NULL ? not_plain_or_failed() : show_list(sizes);
}

/* allowed_sizes(messages: list, the rest of allowed_size, fixed: int) -> list[int] | None */
static PyObject *allowed_sizes(PyObject *Py_UNUSED(module), Arguments given, Py_ssize_t count)
{
    Limits limits;
    Py_ssize_t fixed = count == 6 ? PyLong_AsSsize_t(given[5]) : -1;
    if (fixed < 0 || fixed > MAX_PROPERTIES_BYTES || !is_exactly(given[0], &PyList_Type) || !take_limits(&limits, given + 1)) {
        PyErr_Clear();
        return not_plain();
    }
    return sizes_of(given[0], &limits, fixed);
}

/* ---- Encoding ---- */

static void write_digits(unsigned char *at, size_t number)
{
    for (int place = ID_DIGITS - 1; place >= 0; place--, number >>= 4)
        at[place] = (unsigned char)"0123456789ABCDEF"[number & 0xF];
}

/* What follows a message's texts: its unique id, which ends with a counter, and what all messages have. */
typedef struct {
    const char *before, *after;
    Py_ssize_t before_bytes, after_bytes;
} Ending;

static void write_ending(Writer *writer, const Ending *ending, size_t counter)
{
    unsigned char digits[ID_DIGITS];
    write_digits(digits, counter);
    write_to(writer, ending->before, ending->before_bytes);
    write_to(writer, digits, ID_DIGITS);
    write_to(writer, ending->after, ending->after_bytes);
}

/* Write one message of a batch; 0: not plain. */
static int write_message(Writer *writer, PyObject *one, const Ending *ending, size_t counter)
{
    static const unsigned char blank[BATCH_HEAD_BYTES];
    const char *body = NULL;
    int is_plain;
    if (!is_exactly(one, message.type))
        return 0;
    Py_ssize_t begin = writer->bytes, length = body_bytes(one, &body);
    int32_t flag = flag_of(one, &is_plain);
    if (length < 0 || length > INT32_MAX / 2 || !is_plain)
        return 0;
    write_to(writer, blank, BATCH_HEAD_BYTES); /* filled in below */
    write_to(writer, body, length);
    write_to(writer, blank, 2);
    if (!write_texts(writer, one))
        return 0;
    write_ending(writer, ending, counter);
    Py_ssize_t total = writer->bytes - begin, texts = total - BATCH_FIXED_BYTES - length;
    if (texts > MAX_PROPERTIES_BYTES)
        return 0;
    if (writer->start != NULL) {
        unsigned char *head = writer->start + begin, *texts_length = head + BATCH_HEAD_BYTES + length;
        head = write_i32(head, (int32_t)total);
        head = write_i32(write_i32(write_i32(head, 0), 0), flag);
        write_i32(head, (int32_t)length);
        texts_length[0] = (unsigned char)(texts >> 8), texts_length[1] = (unsigned char)texts;
    }
    return 1;
}

static int write_all(Writer *writer, PyObject *messages, const Ending *ending, Py_ssize_t first)
{
    Py_ssize_t count = PyList_Size(messages);
    for (Py_ssize_t number = 0; number < count; number++)
        if (!write_message(writer, PyList_GetItem(messages, number), ending, (size_t)first + (size_t)number))
            return 0;
    return 1;
}

/* encode_plain(messages: list, before: str, first: int, after: str) -> bytes | None */
static PyObject *encode_plain(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    unsigned char memory[4096];
    PyObject *messages, *encoded;
    Ending ending;
    Py_ssize_t first;
    if (!PyArg_ParseTuple(arguments, "Os#ns#", &messages, &ending.before, &ending.before_bytes, &first,
                          &ending.after, &ending.after_bytes))
        return NULL;
    if (message.type == NULL || !is_exactly(messages, &PyList_Type))
        return not_plain();
    Writer writer = {.start = memory, .room = sizeof memory};
    if (!write_all(&writer, messages, &ending, first))
        encoded = not_plain();
    else if (writer.is_out_of_memory)
        encoded = PyErr_NoMemory();
    else
        encoded = PyBytes_FromStringAndSize((const char *)writer.start, writer.bytes);
    close_writer(&writer);
    return encoded;
}

/* property_text(message, ending: str) -> str | None */
static PyObject *property_text(PyObject *Py_UNUSED(module), Arguments given, Py_ssize_t count)
{
    unsigned char memory[1024];
    Py_ssize_t ending_bytes;
    PyObject *text = NULL;
    if (count != 2 || message.type == NULL || !is_plain_kind(given[0]))
        return not_plain();
    const char *ending = PyUnicode_AsUTF8AndSize(given[1], &ending_bytes);
    if (ending == NULL)
        return NULL;
    Writer writer = {.start = memory, .room = sizeof memory};
    int is_plain = write_texts(&writer, given[0]);
    write_to(&writer, ending, ending_bytes);
    if (!is_plain)
        text = not_plain();
    else if (writer.is_out_of_memory)
        PyErr_NoMemory();
    else
        text = PyUnicode_FromStringAndSize((const char *)writer.start, writer.bytes);
    close_writer(&writer);
    return text;
}

/* ---- Results ---- */

enum { STATUS, QUEUE, RESULT_OFFSET, MSG_ID, OFFSET_MSG_ID, TRANSACTION_ID, REGION_ID, RECALL_HANDLE, IS_TRACE_ON,
       ATTEMPTS };
static const char *const result_slots[] = {"status", "queue", "queue_offset", "msg_id", "offset_msg_id",
                                           "transaction_id", "region_id", "recall_handle", "is_trace_on",
                                           "attempts", NULL};
static Shape send_result;

static PyObject *bind_send_result(PyObject *Py_UNUSED(module), PyObject *type)
{
    int bound = bind_shape(&send_result, type, result_slots);
    return bound < 0 ? NULL : PyBool_FromLong(bound);
}

/* id_texts(prefix: str, first: int, count: int) -> list[str] */
static PyObject *id_texts(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    char text[128];
    const char *prefix;
    Py_ssize_t length, first, count;
    if (!PyArg_ParseTuple(arguments, "s#nn", &prefix, &length, &first, &count))
        return NULL;
    if (length + ID_DIGITS > (Py_ssize_t)sizeof text || count < 0)
        return not_plain();
    memcpy(text, prefix, (size_t)length);
    PyObject *ids = hidden_list(count);
    for (Py_ssize_t number = 0; ids != NULL && number < count; number++) {
        write_digits((unsigned char *)text + length, (size_t)first + (size_t)number);
        PyObject *id = PyUnicode_FromStringAndSize(text, length + ID_DIGITS);
        if (id == NULL || PyList_SetItem(ids, number, id) < 0)
            Py_CLEAR(ids);
    }
    return show_list(ids);
}

/* One result: common holds the values of all slots but the three that differ, which are NULL there. */
static PyObject *result_of(PyObject *const *common, int64_t offset, PyObject *msg_id, const char *offset_id,
                           Py_ssize_t offset_id_length)
{
    Py_INCREF(msg_id); /* the list may lose it while the object is made: see hidden_list */
    PyObject *result = new_object(&send_result);
    if (result == NULL) {
        Py_DECREF(msg_id);
        return NULL;
    }
    for (int slot = STATUS; slot <= ATTEMPTS; slot++)
        if (common[slot] != NULL)
            put(&send_result, result, slot, common[slot]);
    if (put_new(&send_result, result, MSG_ID, msg_id) < 0
        || put_new(&send_result, result, RESULT_OFFSET, PyLong_FromLongLong(offset)) < 0
        || put_new(&send_result, result, OFFSET_MSG_ID, PyUnicode_FromStringAndSize(offset_id, offset_id_length)) < 0)
        Py_CLEAR(result);
    return result;
}

/* The results of messages with these ids, of which offset ids has as many, separated by commas. */
static PyObject *results_of(PyObject *const *common, PyObject *msg_ids, int64_t offset, const char *at, Py_ssize_t left)
{
    Py_ssize_t length = PyList_Size(msg_ids);
    PyObject *results = hidden_list(length);
    for (Py_ssize_t number = 0; results != NULL && number < length; number++) {
        const char *comma = left > 0 ? memchr(at, ',', (size_t)left) : NULL;
        int is_last = number == length - 1, is_fitting = is_last == (comma == NULL);
        Py_ssize_t id_length = is_last || !is_fitting ? left : comma - at;
        PyObject *msg_id = PyList_GetItem(msg_ids, number);
        PyObject *result =
            is_fitting && msg_id != NULL ? result_of(common, offset + number, msg_id, at, id_length) : NULL;
        if (result == NULL || PyList_SetItem(results, number, result) < 0)
            Py_CLEAR(results);
        at += id_length + !is_last, left -= id_length + !is_last;
    }
    return results == NULL ? not_plain_or_failed() : show_list(results);
}

/* send_results(status, queue, first offset, msg_ids: list, offset ids: str, transaction_id, region_id, recall_handle,
   is_trace_on, attempts) -> list[SendResult] | None. */
static PyObject *send_results(PyObject *Py_UNUSED(module), Arguments given, Py_ssize_t count)
{
    PyObject *common[ATTEMPTS + 1];
    Py_ssize_t left;
    if (count != ATTEMPTS + 1 || send_result.type == NULL || !is_exactly(given[MSG_ID], &PyList_Type))
        return not_plain();
    for (int slot = STATUS; slot <= ATTEMPTS; slot++)
        common[slot] = slot == RESULT_OFFSET || slot == MSG_ID || slot == OFFSET_MSG_ID ? NULL : given[slot];
    int64_t offset = PyLong_AsLongLong(given[RESULT_OFFSET]);
    const char *at = PyUnicode_AsUTF8AndSize(given[OFFSET_MSG_ID], &left);
    if (at == NULL || PyErr_Occurred()) {
        PyErr_Clear();
        return not_plain();
    }
    Py_ssize_t length = PyList_Size(given[MSG_ID]);
    if (length == 0 || offset > INT64_MAX - (length - 1)) /* Python's numbers do not overflow */
        return not_plain();
    return results_of(common, given[MSG_ID], offset, at, left);
}

#define FAST(function) (PyCFunction)(void (*)(void))function, METH_FASTCALL

PyMethodDef outgoing_methods[] = {
    {"bind_message", bind_message, METH_VARARGS, "Return the twin of Message.__init__."},
    {"allowed_size", FAST(allowed_size), "Twin of check_message: the bytes of body and texts."},
    {"allowed_sizes", FAST(allowed_sizes), "Twin of check_messages: allowed_size of each of a list."},
    {"encode_plain", encode_plain, METH_VARARGS, "Twin of encode_batch, with texts and ids."},
    {"property_text", FAST(property_text), "Twin of encode_send.property_text, with an ending."},
    {"bind_send_result", bind_send_result, METH_O, "Say which class send_results makes."},
    {"id_texts", id_texts, METH_VARARGS, "The texts of unique ids with these counters."},
    {"send_results", FAST(send_results), "Twin of Placed.results."},
    {NULL, NULL, 0, NULL},
};
