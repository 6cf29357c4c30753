/* The module rmqtools.compiled._twins: see docs/decisions/0034-compiled-twins.md and the comment in shape.h. */

#include "shape.h"

descrgetfunc slot_get;
descrsetfunc slot_set;

int set_up_shapes(void)
{
    slot_get = (descrgetfunc)PyType_GetSlot(&PyMemberDescr_Type, Py_tp_descr_get);
    slot_set = (descrsetfunc)PyType_GetSlot(&PyMemberDescr_Type, Py_tp_descr_set);
    return slot_get == NULL || slot_set == NULL ? -1 : 0;
}

int fill_shape(Shape *shape, PyObject *type, const char *const *names)
{
    if (!PyType_Check(type)) {
        PyErr_SetString(PyExc_TypeError, "want a class with slots");
        return -1;
    }
    for (int slot = 0; names[slot] != NULL; slot++) {
        PyObject *descriptor = PyObject_GetAttrString(type, names[slot]);
        if (descriptor == NULL)
            return -1;
        if (!Py_IS_TYPE(descriptor, &PyMemberDescr_Type)) {
            PyErr_Format(PyExc_TypeError, "%R has no slot %s", type, names[slot]);
            Py_DECREF(descriptor);
            return -1;
        }
        Py_XDECREF(shape->slots[slot]);
        shape->slots[slot] = descriptor; /* kept as long as the process: so are the classes */
    }
    Py_XDECREF((PyObject *)shape->type);
    shape->type = (PyTypeObject *)Py_NewRef(type);
    return 0;
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

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "rmqtools.compiled._twins", .m_doc = "Compiled twins of hot functions.",
    .m_size = -1, /* its shapes are global: one interpreter a process has twins */
};

PyMODINIT_FUNC PyInit__twins(void)
{
    if (set_up_shapes() < 0)
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
