// What the shared library shows: C functions, called from Python by ctypes.
//
// Functions that can fail return a Status, and Python raises what it says. No exception passes this interface.
#pragma once

#include <cstdint>
#include <exception>
#include <new>

#define BOUGH_API extern "C" __attribute__((visibility("default")))

namespace bough {

enum class Status : int32_t {
    ok = 0,
    no_memory = 1,
    failed = 2,  // bough_error says why
};

// Keeps the text for bough_error, cut to what fits.
void remember_error(const char* text) noexcept;

template <class Body>
Status guarded(Body&& body) noexcept {
    try {
        body();
        return Status::ok;
    } catch (const std::bad_alloc&) {
        return Status::no_memory;
    } catch (const std::exception& error) {
        remember_error(error.what());
    } catch (...) {
        remember_error("unknown error");
    }
    return Status::failed;
}

}  // namespace bough
