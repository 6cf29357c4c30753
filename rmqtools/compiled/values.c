/* Twins for making values of dataclasses. The original: rmqtools.model.frozen.maker_of. */

#include "shape.h"

/* Makes values of one class. It lives as long as the process, as the classes do. */
typedef struct {
    Shape shape;
    Py_ssize_t fields;
    PyObject *names[MOST_SLOTS]; /* interned */
    PyObject *original;
} Maker;

static PyObject *make_value(PyObject *self, Arguments given, Py_ssize_t count, PyObject *keywords)
{
    const Maker *maker = PyCapsule_GetPointer(self, NULL);
    PyObject *values[MOST_SLOTS] = {NULL};
    if (maker == NULL)
        return NULL;
    Py_ssize_t named = keywords == NULL ? 0 : PyTuple_Size(keywords);
    if (count + named != maker->fields || !take_arguments(values, maker->names, maker->fields, given, count, keywords))
        return call_as_python(maker->original, given, count, keywords);
    PyObject *made = new_object(&maker->shape);
    for (int field = 0; made != NULL && field < maker->fields; field++)
        put(&maker->shape, made, field, values[field]);
    return made;
}

static PyMethodDef make_definition = {"make", (PyCFunction)(void (*)(void))make_value,
                                      METH_FASTCALL | METH_KEYWORDS, "Make a value; all fields are to be given."};

static void free_maker(Maker *maker)
{
    for (Py_ssize_t field = 0; field < maker->fields; field++)
        Py_XDECREF(maker->names[field]);
    Py_XDECREF((PyObject *)maker->shape.type);
    Py_XDECREF(maker->original);
    PyMem_Free(maker);
}

/* Fill what free_maker frees. -1: an exception is set. */
static int fill_maker(Maker *maker, PyObject *type, PyObject *names, PyObject *original)
{
    const char *slots[MOST_SLOTS + 1] = {NULL};
    maker->fields = PyTuple_Size(names);
    maker->original = Py_NewRef(original);
    for (Py_ssize_t field = 0; field < maker->fields; field++) {
        if ((slots[field] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(names, field), NULL)) == NULL)
            return -1;
        maker->names[field] = Py_NewRef(PyTuple_GetItem(names, field));
        PyUnicode_InternInPlace(&maker->names[field]);
    }
    return fill_shape(&maker->shape, type, slots);
}

/* maker_of(class, names of all its slots in order, the original) -> function | None */
static PyObject *maker_of(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *type, *names, *original, *made = NULL;
    if (!PyArg_ParseTuple(arguments, "OO!O", &type, &PyTuple_Type, &names, &original))
        return NULL;
    if (PyTuple_Size(names) > MOST_SLOTS)
        return not_plain();
    Maker *maker = PyMem_Calloc(1, sizeof *maker);
    if (maker == NULL)
        return PyErr_NoMemory();
    if (fill_maker(maker, type, names, original) < 0 || (made = function_with(&make_definition, maker)) == NULL)
        free_maker(maker);
    return made;
}

PyMethodDef value_methods[] = {
    {"maker_of", maker_of, METH_VARARGS, "Return the twin of a function that makes values."},
    {NULL, NULL, 0, NULL},
};
