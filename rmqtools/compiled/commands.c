/* Twins for the headers of requests and responses.

The originals: rmqtools.protocol.wire.template.FilledRequest.encode and rmqtools.protocol.wire.command. */

#include "shape.h"

enum { FRAME_HEAD_BYTES = 8, MAX_HEADER_BYTES = 0xFFFFFF };

/* ---- Filling a request ---- */

static void write_number(Writer *writer, long long number)
{
    char digits[24], *end = digits + sizeof digits, *at = end;
    unsigned long long left = number < 0 ? 0ULL - (unsigned long long)number : (unsigned long long)number;
    do
        *--at = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (number < 0)
        *--at = '-';
    write_to(writer, at, end - at);
}

/* Write a text as JSON, which must escape quotes, backslashes and control characters, and nothing else. */
static void write_quoted(Writer *writer, const char *text, Py_ssize_t length)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    Py_ssize_t from = 0;
    write_to(writer, "\"", 1);
    for (Py_ssize_t place = 0; place < length; place++) {
        unsigned char letter = (unsigned char)text[place];
        if (letter >= 0x20 && letter != '"' && letter != '\\')
            continue;
        write_to(writer, text + from, place - from);
        from = place + 1;
        const char *found = letter == 0 ? NULL : strchr(escaped, letter);
        char code[6] = {'\\', 'u', '0', '0', "01"[letter >> 4 & 1], "0123456789abcdef"[letter & 0xF]};
        if (found != NULL)
            code[1] = letters[found - escaped];
        write_to(writer, code, found != NULL ? 2 : 6);
    }
    write_to(writer, text + from, length - from);
    write_to(writer, "\"", 1);
}

/* What fills the gaps between the pieces of a template: numbers, perhaps a text, and the opaque. */
typedef struct {
    PyObject *pieces, *numbers;
    const char *text; /* NULL: there is none */
    Py_ssize_t text_bytes;
    long long opaque;
} Filling;

static int write_piece(Writer *writer, const Filling *filling, Py_ssize_t number)
{
    PyObject *piece = PyTuple_GetItem(filling->pieces, number);
    if (piece == NULL || !PyBytes_Check(piece)) {
        PyErr_Clear();
        return 0;
    }
    write_to(writer, PyBytes_AsString(piece), PyBytes_Size(piece));
    return 1;
}

static int write_filled(Writer *writer, const Filling *filling)
{
    Py_ssize_t count = PyTuple_Size(filling->numbers), piece = 0;
    for (Py_ssize_t number = 0; number < count; number++) {
        long long value = PyLong_AsLongLong(PyTuple_GetItem(filling->numbers, number));
        if (PyErr_Occurred()) {
            PyErr_Clear();
            return 0;
        }
        if (!write_piece(writer, filling, piece++))
            return 0;
        write_number(writer, value);
    }
    if (filling->text != NULL) {
        if (!write_piece(writer, filling, piece++))
            return 0;
        write_quoted(writer, filling->text, filling->text_bytes);
    }
    if (!write_piece(writer, filling, piece++))
        return 0;
    write_number(writer, filling->opaque);
    return piece == PyTuple_Size(filling->pieces) - 1 && write_piece(writer, filling, piece);
}

static PyObject *filled_frame(const Filling *filling, const Py_buffer *body)
{
    Writer measured = {NULL, 0};
    if (!write_filled(&measured, filling) || measured.bytes > MAX_HEADER_BYTES || body->len > INT32_MAX / 2)
        return not_plain();
    Py_ssize_t total = FRAME_HEAD_BYTES + measured.bytes + body->len;
    PyObject *frame = PyBytes_FromStringAndSize(NULL, total);
    if (frame == NULL)
        return NULL;
    unsigned char *at = (unsigned char *)PyBytes_AsString(frame);
    at = write_i32(write_i32(at, (int32_t)(total - 4)), (int32_t)measured.bytes); /* serializer 0 is JSON */
    Writer writer = {at, 0};
    write_filled(&writer, filling);
    write_to(&writer, body->buf, body->len);
    return frame;
}

/* fill_request(pieces: tuple[bytes, ...], numbers: tuple[int, ...], text: str | None, opaque: int, body)
   -> bytes | None */
static PyObject *fill_request(PyObject *Py_UNUSED(module), Arguments given, Py_ssize_t count)
{
    Filling filling = {.text = NULL};
    Py_buffer body;
    if (count != 5 || !PyTuple_Check(given[0]) || !PyTuple_Check(given[1]))
        return not_plain();
    filling.pieces = given[0], filling.numbers = given[1];
    filling.opaque = PyLong_AsLongLong(given[3]);
    if (given[2] != Py_None)
        filling.text = PyUnicode_AsUTF8AndSize(given[2], &filling.text_bytes);
    if (PyErr_Occurred() || PyObject_GetBuffer(given[4], &body, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        return not_plain();
    }
    PyObject *frame = filled_frame(&filling, &body);
    PyBuffer_Release(&body);
    return frame;
}

/* ---- Reading a header ---- */

enum { CODE, EXT_FIELDS, BODY, OPAQUE, FLAG, REMARK, LANGUAGE, VERSION, SERIALIZE_TYPE };
static const char *const command_slots[] = {"code", "ext_fields", "body", "opaque", "flag", "remark", "language",
                                            "version", "serialize_type", NULL};
static Shape command;
static PyObject *languages, *json_type; /* by name: dict; the serialize type of what is read here */

enum { MAX_JSON_BYTES = 64 * 1024, MAX_REMARK_BYTES = 1024 };

/* JSON without blanks, escapes, nulls and characters beyond ASCII; anything else is not plain. */
typedef struct {
    const char *at, *end;
} Json;

typedef struct {
    const char *at;
    Py_ssize_t length;
} Text;

static inline int take(Json *json, char wanted)
{
    if (json->at >= json->end || *json->at != wanted)
        return 0;
    json->at++;
    return 1;
}

static int take_text(Json *json, Text *text)
{
    if (!take(json, '"'))
        return 0;
    text->at = json->at;
    while (json->at < json->end && *json->at != '"') {
        unsigned char letter = (unsigned char)*json->at;
        if (letter < 0x20 || letter >= 0x80 || letter == '\\')
            return 0;
        json->at++;
    }
    text->length = json->at - text->at;
    return take(json, '"');
}

static int take_number(Json *json, int32_t *number)
{
    int is_negative = take(json, '-');
    const char *first = json->at;
    int64_t value = 0;
    while (json->at < json->end && *json->at >= '0' && *json->at <= '9' && json->at - first < 11)
        value = value * 10 + (*json->at++ - '0');
    Py_ssize_t digits = json->at - first;
    if (digits == 0 || (digits > 1 && *first == '0') || digits > 10)
        return 0;
    value = is_negative ? -value : value;
    if (value < INT32_MIN || value > INT32_MAX)
        return 0;
    *number = (int32_t)value;
    return 1;
}

static PyObject *take_fields(Json *json)
{
    PyObject *fields = take(json, '{') ? PyDict_New() : NULL;
    if (fields == NULL || take(json, '}'))
        return fields;
    do {
        Text name, value;
        if (!take_text(json, &name) || !take(json, ':') || !take_text(json, &value))
            goto failed;
        PyObject *name_object = known_name(name.at, name.length);
        PyObject *value_object = PyUnicode_FromStringAndSize(value.at, value.length);
        int is_kept = name_object != NULL && value_object != NULL
                      && PyDict_SetItem(fields, name_object, value_object) == 0;
        Py_XDECREF(name_object);
        Py_XDECREF(value_object);
        if (!is_kept)
            goto failed;
    } while (take(json, ','));
    if (take(json, '}'))
        return fields;
failed:
    Py_DECREF(fields);
    return NULL;
}

/* What a header says. A missing key has the value a new command of the Java client has; opaque is 0. */
typedef struct {
    int32_t code, opaque, flag, version;
    int has_code;
    PyObject *fields;
    Text remark, language;
} Header;

static int is_text(const Text *text, const char *wanted)
{
    return strlen(wanted) == (size_t)text->length && memcmp(text->at, wanted, (size_t)text->length) == 0;
}

static int take_member(Json *json, Header *header)
{
    Text name, ignored;
    if (!take_text(json, &name) || !take(json, ':'))
        return 0;
    if (is_text(&name, "code"))
        return header->has_code = take_number(json, &header->code);
    if (is_text(&name, "opaque"))
        return take_number(json, &header->opaque);
    if (is_text(&name, "flag"))
        return take_number(json, &header->flag);
    if (is_text(&name, "version"))
        return take_number(json, &header->version);
    if (is_text(&name, "language"))
        return take_text(json, &header->language);
    if (is_text(&name, "remark"))
        return take_text(json, &header->remark) && header->remark.length <= MAX_REMARK_BYTES;
    if (is_text(&name, "extFields"))
        return header->fields == NULL && (header->fields = take_fields(json)) != NULL;
    return is_text(&name, "serializeTypeCurrentRPC") && take_text(json, &ignored);
}

static int take_header(Json *json, Header *header)
{
    if (!take(json, '{'))
        return 0;
    do
        if (!take_member(json, header))
            return 0;
    while (take(json, ','));
    return take(json, '}') && json->at == json->end && header->has_code;
}

static PyObject *text_or_none(const Text *text)
{
    return text->at == NULL ? Py_NewRef(Py_None) : PyUnicode_FromStringAndSize(text->at, text->length);
}

static PyObject *language_of(const Text *text)
{
    PyObject *name = known_name(text->at, text->length);
    PyObject *language = name == NULL ? NULL : PyDict_GetItemWithError(languages, name);
    Py_XDECREF(name);
    return Py_NewRef(language == NULL ? Py_None : language);
}

static PyObject *command_of(const Header *header, PyObject *body)
{
    const Shape *shape = &command;
    PyObject *made = new_object(shape);
    if (made == NULL)
        return NULL;
    if (put(shape, made, BODY, body) < 0 || put(shape, made, SERIALIZE_TYPE, json_type) < 0
        || put_new(shape, made, EXT_FIELDS, header->fields == NULL ? PyDict_New() : Py_NewRef(header->fields)) < 0
        || put_new(shape, made, CODE, PyLong_FromLong(header->code)) < 0
        || put_new(shape, made, OPAQUE, PyLong_FromLong(header->opaque)) < 0
        || put_new(shape, made, FLAG, PyLong_FromLong(header->flag)) < 0
        || put_new(shape, made, VERSION, PyLong_FromLong(header->version)) < 0
        || put_new(shape, made, REMARK, text_or_none(&header->remark)) < 0
        || put_new(shape, made, LANGUAGE, language_of(&header->language)) < 0) {
        Py_DECREF(made);
        return NULL;
    }
    return made;
}

/* read_header(header: bytes, body: bytes) -> RemotingCommand | None */
static PyObject *read_header(PyObject *Py_UNUSED(module), Arguments given, Py_ssize_t count)
{
    if (count != 2 || command.type == NULL || !PyBytes_Check(given[0]) || PyBytes_Size(given[0]) > MAX_JSON_BYTES)
        return not_plain();
    Json json = {PyBytes_AsString(given[0]), NULL};
    Header header = {.language = {"JAVA", 4}};
    json.end = json.at + PyBytes_Size(given[0]);
    PyObject *made;
    if (take_header(&json, &header))
        made = command_of(&header, given[1]);
    else
        made = PyErr_Occurred() ? NULL : not_plain();
    Py_XDECREF(header.fields);
    return made;
}

/* bind_command(class, languages: dict, json_type) */
static PyObject *bind_command(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *type, *names, *form;
    if (!PyArg_ParseTuple(arguments, "OO!O", &type, &PyDict_Type, &names, &form)
        || fill_shape(&command, type, command_slots) < 0)
        return NULL;
    Py_XDECREF(languages);
    Py_XDECREF(json_type);
    languages = Py_NewRef(names), json_type = Py_NewRef(form);
    return not_plain();
}

PyMethodDef command_methods[] = {
    {"fill_request", (PyCFunction)(void (*)(void))fill_request, METH_FASTCALL, "Twin of FilledRequest.encode."},
    {"bind_command", bind_command, METH_VARARGS, "Say which class read_header makes."},
    {"read_header", (PyCFunction)(void (*)(void))read_header, METH_FASTCALL, "Twin of _decode_json_header."},
    {NULL, NULL, 0, NULL},
};
