/* The module rmqtools.compiled._twins: see docs/decisions/0034-compiled-twins.md and the comment in shape.h. */

#include "shape.h"

/* Where a slot lies: where its descriptor puts a value. probe: an object that has none; 0: an exception is set. */
static Py_ssize_t find_slot(PyObject *probe, Py_ssize_t size, const char *name)
{
    Py_ssize_t found = 0, places = 0;
    PyObject *descriptor = PyObject_GetAttrString((PyObject *)Py_TYPE(probe), name), *mark = PyList_New(0), *done = NULL;
    if (descriptor != NULL && mark != NULL && Py_IS_TYPE(descriptor, &PyMemberDescr_Type))
        done = PyObject_CallMethod(descriptor, "__set__", "OO", probe, mark);
    for (Py_ssize_t at = sizeof(PyObject); done != NULL && at + (Py_ssize_t)sizeof mark <= size; at += sizeof mark)
        if (*(PyObject **)((char *)probe + at) == mark)
            found = at, places++;
    Py_XDECREF(descriptor);
    Py_XDECREF(mark);
    Py_XDECREF(done);
    if (places == 1)
        return found;
    if (!PyErr_Occurred())
        PyErr_Format(PyExc_TypeError, "%R has no slot %s that can be found", Py_TYPE(probe), name);
    return 0;
}

int fill_shape(Shape *shape, PyObject *type, const char *const *names)
{
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "want a class with slots");
        return -1;
    }
    PyObject *basic_size = PyObject_GetAttrString(type, "__basicsize__");
    Py_ssize_t size = basic_size == NULL ? -1 : PyLong_AsSsize_t(basic_size);
    PyObject *probe = size < 0 ? NULL : PyType_GenericAlloc((PyTypeObject *)type, 0);
    int is_filled = probe != NULL;
    for (int slot = 0; is_filled && names[slot] != NULL; slot++)
        is_filled = (shape->offsets[slot] = find_slot(probe, size, names[slot])) > 0;
    Py_XDECREF(basic_size);
    Py_XDECREF(probe);
    if (!is_filled)
        return -1;
    Py_XDECREF((PyObject *)shape->type);
    shape->type = (PyTypeObject *)Py_NewRef(type);
    return 0;
}

int has_known_layout(void)
{
    static const char *const names[] = {"first", "second", NULL};
    Shape shape = {.type = NULL};
    PyObject *type = PyObject_CallFunction((PyObject *)&PyType_Type, "s(){s(ss)}", "Probe", "__slots__", names[0], names[1]);
    int is_known = type != NULL && fill_shape(&shape, type, names) == 0;
    Py_XDECREF((PyObject *)shape.type);
    Py_XDECREF(type);
    if (!is_known)
        PyErr_SetString(PyExc_ImportError, "this interpreter lays out the slots of objects in an unknown way");
    return is_known;
}

int grow_writer(Writer *writer, Py_ssize_t count)
{
    Py_ssize_t room = 2 * (writer->bytes + count);
    unsigned char *heap = PyMem_Realloc(writer->heap, (size_t)room);
    if (heap == NULL) {
        writer->start = NULL;
        writer->is_out_of_memory = 1;
        return 0;
    }
    if (writer->heap == NULL)
        memcpy(heap, writer->start, (size_t)writer->bytes);
    writer->start = writer->heap = heap;
    writer->room = room;
    return 1;
}

/* The field that a keyword names; -1: none. Keywords of calls are interned, so nearly always it is the same object. */
static Py_ssize_t field_named(PyObject *const *names, Py_ssize_t fields, PyObject *name)
{
    for (Py_ssize_t field = 0; field < fields; field++)
        if (names[field] == name)
            return field;
    return -1;
}

int take_arguments(PyObject **values, PyObject *const *names, Py_ssize_t fields, Arguments given, Py_ssize_t count,
                   PyObject *keywords)
{
    if (count > fields)
        return 0;
    for (Py_ssize_t field = 0; field < count; field++)
        values[field] = given[field];
    Py_ssize_t named = keywords == NULL ? 0 : PyTuple_Size(keywords);
    for (Py_ssize_t number = 0; number < named; number++) {
        Py_ssize_t field = field_named(names, fields, PyTuple_GetItem(keywords, number));
        if (field < 0 || values[field] != NULL)
            return 0;
        values[field] = given[count + number];
    }
    return 1;
}

PyObject *call_as_python(PyObject *original, PyObject *self, Arguments given, Py_ssize_t count, PyObject *keywords)
{
    Py_ssize_t first = self != NULL, names = keywords == NULL ? 0 : PyTuple_Size(keywords);
    PyObject *arguments = PyTuple_New(count + first), *named = PyDict_New(), *result = NULL;
    if (arguments == NULL || named == NULL)
        goto done;
    if (self != NULL)
        PyTuple_SetItem(arguments, 0, Py_NewRef(self));
    for (Py_ssize_t place = 0; place < count; place++)
        PyTuple_SetItem(arguments, place + first, Py_NewRef(given[place]));
    for (Py_ssize_t number = 0; number < names; number++)
        if (PyDict_SetItem(named, PyTuple_GetItem(keywords, number), given[count + number]) < 0)
            goto done;
    result = PyObject_Call(original, arguments, named);
done:
    Py_XDECREF(arguments);
    Py_XDECREF(named);
    return result;
}

PyObject *function_with(PyMethodDef *method, void *data)
{
    PyObject *self = PyCapsule_New(data, NULL, NULL);
    PyObject *function = self == NULL ? NULL : PyCFunction_NewEx(method, self, NULL);
    Py_XDECREF(self);
    return function;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "rmqtools.compiled._twins", .m_doc = "Compiled twins of hot functions.",
    .m_size = -1, /* its shapes are global: one interpreter a process has twins */
};

PyMODINIT_FUNC PyInit__twins(void)
{
    if (!has_known_layout())
        return NULL;
    PyObject *module = PyModule_Create(&definition);
    if (module == NULL)
        return NULL;
    if (PyModule_AddFunctions(module, received_methods) < 0 || PyModule_AddFunctions(module, outgoing_methods) < 0
        || PyModule_AddFunctions(module, command_methods) < 0
        || PyModule_AddFunctions(module, exchange_methods) < 0 || PyModule_AddFunctions(module, value_methods) < 0) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
