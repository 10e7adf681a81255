"""pysimd where other libraries' arrays and compilers are: a module for each, imported by who asks for it.

Each missing package is an ``UnavailableError`` that names the extra to install.
"""
