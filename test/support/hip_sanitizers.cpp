// Options of sanitizers for programs that use HIP. In the programs, not in the environment of the
// tests, so that they hold for no other program.

// LLVM in libamd_comgr gives each thread that compiles a signal stack of its own. At the thread's
// end AddressSanitizer unmaps whatever signal stack it finds. HIP's threads compile with
// AMD_DIRECT_DISPATCH=0.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();

extern "C" const char* __asan_default_options() { return "use_sigaltstack=0"; }

// HIP never calls hsa_shut_down(), so what it and the libraries below it hold at the end of the
// process is never freed: commands and objects of HIP, the metadata of code objects in amd_comgr
// and LLVM, and ROCr's signals and queues.
//
// Each line covers every stack with a frame of this library, because LeakSanitizer walks frame
// pointers and these libraries have none. It hides an object of HIP that a test or the engine does
// not destroy. To look for one, run the program with ASAN_OPTIONS=fast_unwind_on_malloc=0, which
// shows complete stacks and takes a multiple of the time. Programs without HIP find an HSA object
// that the engine leaks, because their hsa_shut_down() frees ROCr's own.
extern "C" __attribute__((visibility("default"))) const char* __lsan_default_suppressions();

extern "C" const char* __lsan_default_suppressions() {
  return "leak:libamdhip64.so\n"
         "leak:libamd_comgr.so\n"
         "leak:libLLVM\n"
         "leak:libhsa-runtime64.so\n";
}

// HIP's library is compiled without sanitizers. With AMD_DIRECT_DISPATCH=0, a thread passes blocks
// of memory to a thread of HIP in a lock-free queue. ThreadSanitizer sees how they are allocated
// and freed, but not the atomics of the queue.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions();

extern "C" const char* __tsan_default_suppressions() { return "race:libamdhip64.so\n"; }
