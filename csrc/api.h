// What the shared library shows: C functions, called from Python by ctypes.
#pragma once

#define BOUGH_API extern "C" __attribute__((visibility("default")))
