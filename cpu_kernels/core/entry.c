/* entry.c: see entry.h. Compiled for the baseline processor; stable ABI of Python 3.10. */
#define NO_IMPORT_ARRAY
#include "entry.h"

enum { MOST_PARAMETERS = 10 };

typedef struct {
    pysimd_in_c in_c;
    PyObject *function;
    PyObject *names[MOST_PARAMETERS], *defaults[MOST_PARAMETERS]; /* NULL: the call must give it */
    Py_ssize_t count, by_position;
    PyObject *text; /* keeps the docstring alive */
    PyMethodDef definition;
} entry;

static entry entries[PYSIMD_ENTRIES];

/* The arguments of a call in the order of the parameters; 0 if one is missing or unknown, or its name not interned. */
static int in_order(const entry *e, PyObject *const *args, Py_ssize_t count, PyObject *names, PyObject **given)
{
    if (count > e->by_position) return 0;
    for (Py_ssize_t i = 0; i < e->count; i++) given[i] = i < count ? args[i] : e->defaults[i];
    const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        const PyObject *name = PyTuple_GetItem(names, i);
        Py_ssize_t parameter = count;
        while (parameter < e->count && e->names[parameter] != name) parameter++;
        if (parameter == e->count) return 0;
        given[parameter] = args[count + i];
    }
    for (Py_ssize_t i = 0; i < e->count; i++)
        if (!given[i]) return 0;
    return 1;
}

static PyObject *in_python(const entry *e, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *result = NULL, *positional = PyTuple_New(count), *named = PyDict_New();
    int failed = !positional || !named;
    for (Py_ssize_t i = 0; i < count && !failed; i++) {
        Py_INCREF(args[i]);
        failed = PyTuple_SetItem(positional, i, args[i]);
    }
    const Py_ssize_t by_name = names ? PyTuple_Size(names) : 0;
    for (Py_ssize_t i = 0; i < by_name && !failed; i++)
        failed = PyDict_SetItem(named, PyTuple_GetItem(names, i), args[count + i]);
    if (!failed) result = PyObject_Call(e->function, positional, named);
    Py_XDECREF(positional), Py_XDECREF(named);
    return result;
}

static PyObject *call(const entry *e, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    PyObject *given[MOST_PARAMETERS];
    if (!in_order(e, args, count, names, given)) return in_python(e, args, count, names);
    PyObject *result = e->in_c(NULL, given, e->count);
    if (result != Py_NotImplemented) return result;
    Py_DECREF(result);
    return in_python(e, args, count, names);
}

static PyObject *call_0(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    (void)self;
    return call(&entries[0], args, count, names);
}

static PyObject *call_1(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    (void)self;
    return call(&entries[1], args, count, names);
}

static PyObject *(*const CALLS[PYSIMD_ENTRIES])(PyObject *, PyObject *const *, Py_ssize_t, PyObject *) = {call_0, call_1};

PyObject *pysimd_entry(int which, pysimd_in_c in_c, PyObject *args)
{
    PyObject *function, *module, *names, *defaults, *text;
    Py_ssize_t by_position;
    if (!PyArg_ParseTuple(args, "OUO!O!nU", &function, &module, &PyTuple_Type, &names, &PyTuple_Type, &defaults,
                          &by_position, &text))
        return NULL;
    const Py_ssize_t count = PyTuple_Size(names), required = count - PyTuple_Size(defaults);
    entry *e = &entries[which];
    if (count > MOST_PARAMETERS || required < 0) {
        PyErr_SetString(PyExc_ValueError, "too many parameters or defaults");
        return NULL;
    }
    PyObject *name = PyObject_GetAttrString(function, "__name__"); /* kept, as all that the builtin refers to */
    e->definition.ml_name = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    e->definition.ml_doc = PyUnicode_AsUTF8AndSize(text, NULL);
    if (!e->definition.ml_name || !e->definition.ml_doc) {
        Py_XDECREF(name);
        return NULL;
    }
    e->definition.ml_meth = (PyCFunction)(void *)CALLS[which], e->definition.ml_flags = METH_FASTCALL | METH_KEYWORDS;
    e->in_c = in_c, e->count = count, e->by_position = by_position;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_INCREF(e->names[i] = PyTuple_GetItem(names, i));
        e->defaults[i] = i < required ? NULL : PyTuple_GetItem(defaults, i - required);
        Py_XINCREF(e->defaults[i]);
    }
    Py_INCREF(e->function = function), Py_INCREF(e->text = text);
    return PyCFunction_NewEx(&e->definition, NULL, module);
}
