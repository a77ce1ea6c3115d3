// Makes a kernel's call of printf an error. Without this file, clang 15 compiles the call to
// nothing. uptempo_add_kernels makes the device compiler read the file twice: before its own OpenCL
// header, for the macros, and after it.
//
// The first reading adds two attributes to the declaration in the compiler's header:
//   * Another symbol, which no device library defines. A call that remains after optimization
//     cannot be linked. The linker prints the symbol, so the symbol is the message.
//   * `error`, for which clang 15 and 16 print the call's place in the source. Clang 19 and newer
//     lower variadic calls before they check it. A function's first declaration must have this
//     attribute.
//
// OPTIONS "-Dprintf(...)=", with which a user removes all calls, remains effective.
#if !defined(UPTEMPO_NO_PRINTF)
#define UPTEMPO_NO_PRINTF                                                                        \
  __asm__(                                                                                       \
      "printf (Uptempo cannot print from a kernel: write the values to a buffer and print them " \
      "on the host)")
#if !defined(printf)
#define UPTEMPO_DECLARES_PRINTF
#define printf(...) printf(__VA_ARGS__) UPTEMPO_NO_PRINTF __attribute__((error("remove the call")))
#endif
#else
#if defined(UPTEMPO_DECLARES_PRINTF)
#undef printf
#undef UPTEMPO_DECLARES_PRINTF
#if __OPENCL_C_VERSION__ >= 120 || defined(__OPENCL_CPP_VERSION__)
// For a compiler whose header does not declare printf.
int printf(__constant const char* format, ...) UPTEMPO_NO_PRINTF;
#endif
#endif
// The compiler's name for the library function.
#define __builtin_printf printf
#endif
