// Makes a kernel's call of printf an error. Without this file, clang 15 compiles the call to nothing.
// uptempo_add_kernels has the device compiler read the file twice: before its own OpenCL header, for the
// macros, and after it.
//
// The first reading gives two attributes to the declaration in the compiler's header:
//   * Another symbol, which no device library defines. A call that is left after optimisation cannot be
//     linked. The linker prints the symbol, so the symbol is the message.
//   * `error`, with which clang 15 and 16 give the call's place in the source. Clang 19 and newer lower
//     variadic calls before they look for it. A function's first declaration must have this attribute.
//
// OPTIONS "-Dprintf(...)=", with which a user takes all calls out, stays in force.
#if !defined(UPTEMPO_NO_PRINTF)
#define UPTEMPO_NO_PRINTF \
  __asm__("printf (Uptempo cannot print from a kernel: write the values to a buffer and print them on the host)")
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
// The compiler's name for the function of the library.
#define __builtin_printf printf
#endif
