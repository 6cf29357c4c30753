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
        return call_as_python(maker->original, NULL, given, count, keywords);
    PyObject *made = new_object(&maker->shape);
    for (int field = 0; made != NULL && field < maker->fields; field++)
        put(&maker->shape, made, field, values[field]);
    return made;
}

static PyMethodDef make_definition = {"make", (PyCFunction)(void (*)(void))make_value,
                                      METH_FASTCALL | METH_KEYWORDS, "Make a value; all fields are to be given."};

/* maker_of(class, names of all its slots in order, the original) -> function | None */
static PyObject *maker_of(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *type, *names, *original;
    const char *slots[MOST_SLOTS + 1] = {NULL};
    if (!PyArg_ParseTuple(arguments, "OO!O", &type, &PyTuple_Type, &names, &original))
        return NULL;
    if (PyTuple_Size(names) > MOST_SLOTS)
        return not_plain();
    Maker *maker = PyMem_Calloc(1, sizeof *maker);
    if (maker == NULL)
        return PyErr_NoMemory();
    maker->fields = PyTuple_Size(names);
    maker->original = Py_NewRef(original);
    for (Py_ssize_t field = 0; field < maker->fields; field++) {
        maker->names[field] = Py_NewRef(PyTuple_GetItem(names, field));
        PyUnicode_InternInPlace(&maker->names[field]);
        if ((slots[field] = PyUnicode_AsUTF8AndSize(maker->names[field], NULL)) == NULL)
            return NULL;
    }
    if (fill_shape(&maker->shape, type, slots) < 0)
        return NULL;
    return function_with(&make_definition, maker);
}

PyMethodDef value_methods[] = {
    {"maker_of", maker_of, METH_VARARGS, "Return the twin of a function that makes values."},
    {NULL, NULL, 0, NULL},
};
