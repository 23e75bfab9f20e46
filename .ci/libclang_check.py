"""Tell whether a libclang can do what bindgen needs of it: parse C that includes the compiler's own headers.

    libclang_check.py /path/of/libclang.so [compiler arguments]

Exit status 0 if so. A library without the headers that belong to it is the usual failure: PyPI's wheel is one, and
so is Debian's libclang1 without libclang-common-dev.
"""
import ctypes
import sys

SOURCE = b"#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\nsize_t f(uint64_t a, bool b);\n"
WARNING = 2  # CXDiagnosticSeverity; above it are errors


class UnsavedFile(ctypes.Structure):
    """CXUnsavedFile: a source that is not on disk."""

    _fields_ = [("name", ctypes.c_char_p), ("contents", ctypes.c_char_p), ("length", ctypes.c_ulong)]


def errors(library, arguments):
    clang = ctypes.CDLL(library)
    for name in ("clang_createIndex", "clang_parseTranslationUnit", "clang_getDiagnostic"):
        getattr(clang, name).restype = ctypes.c_void_p
    index = ctypes.c_void_p(clang.clang_createIndex(0, 0))
    words = (ctypes.c_char_p * len(arguments))(*[word.encode() for word in arguments])
    unsaved = UnsavedFile(b"check.h", SOURCE, len(SOURCE))
    unit = clang.clang_parseTranslationUnit(index, b"check.h", words, len(arguments), ctypes.byref(unsaved), 1, 0)
    if not unit:
        return 1
    unit = ctypes.c_void_p(unit)
    diagnostics = (clang.clang_getDiagnostic(unit, n) for n in range(clang.clang_getNumDiagnostics(unit)))
    return sum(clang.clang_getDiagnosticSeverity(ctypes.c_void_p(d)) > WARNING for d in diagnostics)


if __name__ == "__main__":
    sys.exit(1 if errors(sys.argv[1], sys.argv[2:]) else 0)
