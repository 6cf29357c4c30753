/* Twins for the headers of requests and responses.

The originals: rmqtools.protocol.wire.template.FilledRequest.encode, rmqtools.protocol.wire.command,
rmqtools.protocol.wire.framing and rmqtools.protocol.headers.codec.decode_header. */

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
    unsigned char header[1024];
    Writer writer = {.start = header, .room = sizeof header};
    PyObject *frame = NULL;
    if (!write_filled(&writer, filling) || writer.bytes > MAX_HEADER_BYTES || body->len > INT32_MAX / 2)
        frame = not_plain();
    else if (writer.is_out_of_memory)
        PyErr_NoMemory();
    else if ((frame = PyBytes_FromStringAndSize(NULL, FRAME_HEAD_BYTES + writer.bytes + body->len)) != NULL) {
        unsigned char *at = (unsigned char *)PyBytes_AsString(frame);
        at = write_i32(at, (int32_t)(FRAME_HEAD_BYTES - 4 + writer.bytes + body->len));
        at = write_i32(at, (int32_t)writer.bytes); /* serializer 0 is JSON */
        memcpy(at, writer.start, (size_t)writer.bytes);
        if (body->len > 0) /* an empty buffer may be at no address */
            memcpy(at + writer.bytes, body->buf, (size_t)body->len);
    }
    close_writer(&writer);
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

/* The command that a header describes; for a missing key, the value of a new Java command, opaque 0. */
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
    return language != NULL ? Py_NewRef(language) : PyErr_Occurred() ? NULL : not_plain();
}

static PyObject *command_of(const Header *header, PyObject *body)
{
    const Shape *shape = &command;
    PyObject *made = new_object(shape);
    if (made == NULL)
        return NULL;
    put(shape, made, BODY, body);
    put(shape, made, SERIALIZE_TYPE, json_type);
    if (put_new(shape, made, EXT_FIELDS, header->fields == NULL ? PyDict_New() : Py_NewRef(header->fields)) < 0
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

/* The command of a JSON header; None if it is not plain. */
static PyObject *read_json(const char *at, Py_ssize_t length, PyObject *body)
{
    Json json = {at, at + length};
    Header header = {.language = {"JAVA", 4}};
    PyObject *made = NULL;
    if (command.type == NULL || length > MAX_JSON_BYTES)
        return not_plain();
    if (take_header(&json, &header))
        made = command_of(&header, body);
    else if (!PyErr_Occurred())
        made = not_plain();
    Py_XDECREF(header.fields);
    return made;
}

/* read_header(header: bytes, body: bytes) -> RemotingCommand | None */
static PyObject *read_header(PyObject *Py_UNUSED(module), Arguments given, Py_ssize_t count)
{
    if (count != 2 || !PyBytes_Check(given[0]))
        return not_plain();
    return read_json(PyBytes_AsString(given[0]), PyBytes_Size(given[0]), given[1]);
}

static PyObject *read_whole(const unsigned char *at, Py_ssize_t length)
{
    if (length < FRAME_HEAD_BYTES || length > INT32_MAX)
        return not_plain();
    Py_ssize_t header_bytes = read_i32(at + 4); /* its first byte names the serializer: 0 is JSON */
    if (read_i32(at) != length - 4 || header_bytes < 0 || header_bytes > length - FRAME_HEAD_BYTES)
        return not_plain();
    const char *header = (const char *)at + FRAME_HEAD_BYTES;
    PyObject *body = PyBytes_FromStringAndSize(header + header_bytes, length - FRAME_HEAD_BYTES - header_bytes);
    if (body == NULL)
        return NULL;
    PyObject *made = read_json(header, header_bytes, body);
    Py_DECREF(body);
    return made;
}

/* read_frame(data: buffer, count: int) -> RemotingCommand | None

The first count bytes must be one frame, whole and with a JSON header. */
static PyObject *read_frame(PyObject *Py_UNUSED(module), Arguments given, Py_ssize_t count)
{
    Py_buffer data;
    Py_ssize_t length = count == 2 ? PyLong_AsSsize_t(given[1]) : -1;
    if (length < 0 || PyObject_GetBuffer(given[0], &data, PyBUF_SIMPLE) < 0) {
        PyErr_Clear();
        return not_plain();
    }
    PyObject *made = length > data.len ? not_plain() : read_whole(data.buf, length);
    PyBuffer_Release(&data);
    return made;
}

/* bind_command(class, languages: dict, json_type) */
static PyObject *bind_command(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *type, *names, *form;
    if (!PyArg_ParseTuple(arguments, "OO!O", &type, &PyDict_Type, &names, &form))
        return NULL;
    int bound = bind_shape(&command, type, command_slots);
    if (bound > 0)
        languages = Py_NewRef(names), json_type = Py_NewRef(form);
    return bound < 0 ? NULL : PyBool_FromLong(bound);
}

/* ---- Typed headers ---- */

enum { FIELD_NAME, FIELD_WIRE, FIELD_PARSE, FIELD_PUT, FIELD_DEFAULT, FIELD_PARTS }; /* of a HeaderField */
enum { AS_TEXT = 0, DIGITS_32 = 9, DIGITS_64 = 18, NEVER_PLAIN = -1 };                /* so many digits always fit */

/* Reads headers of one class. It lives as long as the process, as the classes do. */
typedef struct {
    Shape shape;
    Py_ssize_t fields;
    PyObject *wires[MOST_SLOTS], *defaults[MOST_SLOTS]; /* default NULL: the field is required */
    int forms[MOST_SLOTS];                              /* AS_TEXT and so on */
} Reader;

static PyObject *plain_number(PyObject *text, int most_digits)
{
    Py_ssize_t length;
    const char *at = PyUnicode_AsUTF8AndSize(text, &length);
    int64_t value = 0;
    if (at == NULL || length == 0 || length > most_digits)
        return NULL;
    for (const char *end = at + length; at < end; at++) {
        if (*at < '0' || *at > '9')
            return NULL;
        value = value * 10 + (*at - '0');
    }
    return PyLong_FromLongLong(value);
}

/* The value of a field, a new reference; NULL: it is not plain, or an error is set. */
static PyObject *field_value(const Reader *reader, Py_ssize_t field, PyObject *ext_fields)
{
    PyObject *text = PyDict_GetItemWithError(ext_fields, reader->wires[field]);
    if (text == NULL || text == Py_None)
        return PyErr_Occurred() ? NULL : Py_XNewRef(reader->defaults[field]);
    if (!is_exactly(text, &PyUnicode_Type) || reader->forms[field] == NEVER_PLAIN)
        return NULL;
    return reader->forms[field] == AS_TEXT ? Py_NewRef(text) : plain_number(text, reader->forms[field]);
}

/* read(ext_fields: dict) -> header | None */
static PyObject *read_fields(PyObject *self, PyObject *ext_fields)
{
    const Reader *reader = PyCapsule_GetPointer(self, NULL);
    if (reader == NULL || !PyDict_Check(ext_fields))
        return not_plain();
    PyObject *header = new_object(&reader->shape);
    for (Py_ssize_t field = 0; header != NULL && field < reader->fields; field++) {
        if (put_new(&reader->shape, header, (int)field, field_value(reader, field, ext_fields)) == 0)
            continue;
        Py_DECREF(header);
        return not_plain_or_failed();
    }
    return header;
}

static PyMethodDef read_definition = {"read", read_fields, METH_O, "Make a header of text fields; None: not plain."};

static void free_reader(Reader *reader)
{
    for (Py_ssize_t field = 0; field < reader->fields; field++) {
        Py_XDECREF(reader->wires[field]);
        Py_XDECREF(reader->defaults[field]);
    }
    Py_XDECREF((PyObject *)reader->shape.type);
    PyMem_Free(reader);
}

/* The parsers of 32 and of 64 bits, and the mark of a field without a default. */
typedef struct {
    PyObject *parse_int32, *parse_int64, *missing;
} Marks;

/* Fill one field of a reader, and return its name; NULL: an exception is set. */
static const char *fill_field(Reader *reader, Py_ssize_t number, PyObject *field, const Marks *marks)
{
    PyObject *parts[FIELD_PARTS];
    if (!PyTuple_Check(field) || PyTuple_Size(field) != FIELD_PARTS) {
        PyErr_SetString(PyExc_TypeError, "want a HeaderField");
        return NULL;
    }
    for (int part = 0; part < FIELD_PARTS; part++)
        parts[part] = PyTuple_GetItem(field, part);
    PyObject *parse = parts[FIELD_PARSE], *preset = parts[FIELD_DEFAULT];
    reader->forms[number] = parse == (PyObject *)&PyUnicode_Type ? AS_TEXT
                            : parse == marks->parse_int32        ? DIGITS_32
                            : parse == marks->parse_int64        ? DIGITS_64
                                                                 : NEVER_PLAIN;
    reader->wires[number] = Py_NewRef(parts[FIELD_WIRE]);
    reader->defaults[number] = preset == marks->missing ? NULL : Py_NewRef(preset);
    return PyUnicode_AsUTF8AndSize(parts[FIELD_NAME], NULL);
}

/* Fill what free_reader frees. -1: an exception is set. */
static int fill_reader(Reader *reader, PyObject *type, PyObject *fields, const Marks *marks)
{
    const char *names[MOST_SLOTS + 1] = {NULL};
    reader->fields = PyTuple_Size(fields);
    for (Py_ssize_t number = 0; number < reader->fields; number++)
        if ((names[number] = fill_field(reader, number, PyTuple_GetItem(fields, number), marks)) == NULL)
            return -1;
    return fill_shape(&reader->shape, type, names);
}

/* reader_of(class, fields: tuple[HeaderField, ...], the parser of 32 bits, that of 64, the mark of a field without a
   default) -> function | None */
static PyObject *reader_of(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *type, *fields, *made = NULL;
    Marks marks;
    if (!PyArg_ParseTuple(arguments, "OO!OOO", &type, &PyTuple_Type, &fields, &marks.parse_int32, &marks.parse_int64,
                          &marks.missing))
        return NULL;
    if (PyTuple_Size(fields) > MOST_SLOTS)
        return not_plain();
    Reader *reader = PyMem_Calloc(1, sizeof *reader);
    if (reader == NULL)
        return PyErr_NoMemory();
    if (fill_reader(reader, type, fields, &marks) < 0 || (made = function_with(&read_definition, reader)) == NULL)
        free_reader(reader);
    return made;
}

PyMethodDef command_methods[] = {
    {"fill_request", (PyCFunction)(void (*)(void))fill_request, METH_FASTCALL, "Twin of FilledRequest.encode."},
    {"bind_command", bind_command, METH_VARARGS, "Say which class read_header makes."},
    {"read_header", (PyCFunction)(void (*)(void))read_header, METH_FASTCALL, "Twin of _decode_json_header."},
    {"read_frame", (PyCFunction)(void (*)(void))read_frame, METH_FASTCALL,
     "Twin of FrameDecoder and decode_command, for one whole frame."},
    {"reader_of", reader_of, METH_VARARGS, "Return the twin of decode_header for one class."},
    {NULL, NULL, 0, NULL},
};
