/* Reads and writes the slots of Python classes, and the bytes of the wire.

A twin is a function that returns what its Python original returns, for plain input only. For any other input it
returns None and has no effect: then the original runs, which alone knows all cases and all errors. A twin itself
raises nothing but MemoryError. */

#ifndef RMQTOOLS_SHAPE_H
#define RMQTOOLS_SHAPE_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#define MOST_SLOTS 16

/* A class with slots: itself, and where in its objects the slots lie that a twin uses. */
typedef struct {
    PyTypeObject *type;
    Py_ssize_t offsets[MOST_SLOTS]; /* bytes */
} Shape;

typedef PyObject *const *Arguments;

/* Whether slots lie where fill_shape looks for them; if not, an ImportError is set. */
int has_known_layout(void);

/* Fill a new shape from a class and the names of its slots, of which the last is NULL. -1: an exception is set, and
   the shape is as before. */
int fill_shape(Shape *shape, PyObject *type, const char *const *names);

/* Fill a global shape, once in a process. 0: it has a class already, the same or another (a module was reloaded): that
   one stays, and the caller does without twins. -1: an exception is set, and the shape is as before. */
int bind_shape(Shape *shape, PyObject *type, const char *const *names);

static inline PyObject *new_object(const Shape *shape) { return PyType_GenericAlloc(shape->type, 0); }

/* Where the value of a slot lies. The object must be of the class, or of one that inherits from it. */
static inline PyObject **slot_of(const Shape *shape, PyObject *object, int slot)
{
    return (PyObject **)((char *)object + shape->offsets[slot]);
}

/* The value of a slot, borrowed; NULL: it has none. */
static inline PyObject *get(const Shape *shape, PyObject *object, int slot) { return *slot_of(shape, object, slot); }

/* Set a slot to a value that is owned here; NULL: making it has failed, and so has this. */
static inline int put_new(const Shape *shape, PyObject *object, int slot, PyObject *value)
{
    PyObject **place = slot_of(shape, object, slot), *before = *place;
    if (value == NULL)
        return -1;
    *place = value;
    Py_XDECREF(before);
    return 0;
}

static inline void put(const Shape *shape, PyObject *object, int slot, PyObject *value)
{
    put_new(shape, object, slot, Py_NewRef(value));
}

/* A list that is filled item by item. Until show_list the garbage collector does not know it: in CPython 3.11 a
   collection may run in any allocation, and a callback of it would read items that are not there yet. */
static inline PyObject *hidden_list(Py_ssize_t length)
{
    PyObject *list = PyList_New(length);
    if (list != NULL)
        PyObject_GC_UnTrack(list);
    return list;
}

/* The filled list; NULL stays NULL. */
static inline PyObject *show_list(PyObject *list)
{
    if (list != NULL)
        PyObject_GC_Track(list);
    return list;
}

static inline PyObject *not_plain(void) { return Py_NewRef(Py_None); }

/* The result where something has failed: NULL with a MemoryError; else None, and the original says what is wrong. */
static inline PyObject *not_plain_or_failed(void)
{
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_MemoryError))
        return NULL;
    PyErr_Clear();
    return not_plain();
}

static inline int is_exactly(PyObject *object, PyTypeObject *type) { return Py_IS_TYPE(object, type); }

static inline int16_t read_i16(const unsigned char *at) { return (int16_t)(at[0] << 8 | at[1]); }

static inline int32_t read_i32(const unsigned char *at)
{
    return (int32_t)((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
}

static inline int64_t read_i64(const unsigned char *at)
{
    return (int64_t)((uint64_t)(uint32_t)read_i32(at) << 32 | (uint32_t)read_i32(at + 4));
}

static inline unsigned char *write_i32(unsigned char *at, int32_t value)
{
    at[0] = (unsigned char)((uint32_t)value >> 24), at[1] = (unsigned char)((uint32_t)value >> 16);
    at[2] = (unsigned char)((uint32_t)value >> 8), at[3] = (unsigned char)value;
    return at + 4;
}

/* Where bytes are written; it grows. Without memory they are only counted: at first, or after memory has run out. */
typedef struct {
    unsigned char *start;
    Py_ssize_t bytes, room;
    unsigned char *heap; /* to be freed by close_writer; NULL: start is the caller's memory, or there is none */
    int is_out_of_memory;
} Writer;

/* Make room for so many bytes more; 0: there is no memory. */
int grow_writer(Writer *writer, Py_ssize_t count);

static inline void write_to(Writer *writer, const void *bytes, Py_ssize_t count)
{
    if (writer->start != NULL && (writer->bytes + count <= writer->room || grow_writer(writer, count)))
        memcpy(writer->start + writer->bytes, bytes, (size_t)count);
    writer->bytes += count;
}

static inline void close_writer(Writer *writer) { PyMem_Free(writer->heap); }

/* The field that a keyword names; -1: none. Keywords of calls are interned, so nearly always it is the same object. */
static inline Py_ssize_t field_named(PyObject *const *names, Py_ssize_t fields, PyObject *name)
{
    for (Py_ssize_t field = 0; field < fields; field++)
        if (names[field] == name)
            return field;
    return -1;
}

/* Sort the arguments of a vectorcall into the fields with these names, which are interned. values: all NULL before; those
   of fields that are not given stay so. 0: too many arguments, an unknown name, or two values for a field. */
int take_arguments(PyObject **values, PyObject *const *names, Py_ssize_t fields, Arguments given, Py_ssize_t count,
                   PyObject *keywords);

/* Call the original with the arguments of a vectorcall. */
PyObject *call_as_python(PyObject *original, Arguments given, Py_ssize_t count, PyObject *keywords);

/* A function whose self is a capsule with data, which is never freed. */
PyObject *function_with(PyMethodDef *method, void *data);

/* A text that is often the same: the name of a property or of a field. A new reference. */
PyObject *known_name(const char *at, Py_ssize_t length);

/* The functions of the module, and what binds them to classes. */
extern PyMethodDef received_methods[];
extern PyMethodDef outgoing_methods[];
extern PyMethodDef command_methods[];
extern PyMethodDef exchange_methods[];
extern PyMethodDef value_methods[];

#endif
