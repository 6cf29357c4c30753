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
    Shape filled = {.type = (PyTypeObject *)type};
    int is_filled = probe != NULL;
    for (int slot = 0; is_filled && names[slot] != NULL; slot++)
        is_filled = (filled.offsets[slot] = find_slot(probe, size, names[slot])) > 0;
    Py_XDECREF(basic_size);
    Py_XDECREF(probe);
    if (!is_filled)
        return -1;
    Py_INCREF(type);
    *shape = filled;
    return 0;
}

int bind_shape(Shape *shape, PyObject *type, const char *const *names)
{
    if (shape->type != NULL)
        return 0;
    return fill_shape(shape, type, names) < 0 ? -1 : 1;
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

PyObject *call_as_python(PyObject *original, Arguments given, Py_ssize_t count, PyObject *keywords)
{
    Py_ssize_t names = keywords == NULL ? 0 : PyTuple_Size(keywords);
    PyObject *named = PyDict_New(), *arguments = PyTuple_New(count), *result = NULL; /* the tuple last: see hidden_list */
    if (arguments == NULL || named == NULL)
        goto done;
    for (Py_ssize_t place = 0; place < count; place++)
        PyTuple_SetItem(arguments, place, Py_NewRef(given[place]));
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

/* Whether this interpreter may have twins; if not, an ImportError is set. The shapes are global and hold objects of one
   interpreter. Others would get its classes; one that is started after its end would get freed memory. */
static int is_first_load(void)
{
    static int was_loaded;
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0)
        PyErr_SetString(PyExc_ImportError, "only the main interpreter of a process has it");
    else if (was_loaded)
        PyErr_SetString(PyExc_ImportError, "this process has loaded it before, and loads it once");
    else
        return was_loaded = 1;
    return 0;
}

static int fill_module(PyObject *module)
{
    PyMethodDef *const all[] = {received_methods, outgoing_methods, command_methods, exchange_methods, value_methods};
    if (!has_known_layout() || !is_first_load())
        return -1;
    for (size_t some = 0; some < sizeof all / sizeof *all; some++)
        if (PyModule_AddFunctions(module, all[some]) < 0)
            return -1;
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill_module}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "rmqtools.compiled._twins", .m_doc = "Compiled twins of hot functions.",
    .m_size = 0, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__twins(void) { return PyModuleDef_Init(&definition); }
