// HIP's functions that run kernels and copies. They note the stream for the packets that the call
// publishes on its thread, so that findings name it.
//
// Each forwards all words that an argument list of HIP may have. Words beyond the list are the
// caller's own stack, which is readable, and HIP does not look at them.
//
// A program that finds these functions in HIP's library by itself (dlsym, hipGetProcAddress) does
// not call them, and HIP may publish on a thread of its own (AMD_DIRECT_DISPATCH=0). The stream is
// then not known.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "device/host/publisher.hpp"
#include "interpose/hip_calls.hpp"
#include "interpose/hip_library.hpp"

namespace {

namespace hip = uptempo::vgpu::hip;
using hip::kDefault;
using uptempo::vgpu::HipStream;

using Word = uint64_t;
// kMostWords of them
using Call = int (*)(Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word,
                     Word);

// The functions of the preloaded library, which knows the thread's calls.
struct Notes {
  bool (*begin)(uint64_t stream) =
      reinterpret_cast<bool (*)(uint64_t)>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_hip_call_begins"));
  void (*end)() = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "uptempo_vgpu_hip_call_ends"));
};

class Note {
 public:
  explicit Note(Word stream) noexcept
      : begun_(notes().begin != nullptr && notes().end != nullptr && notes().begin(stream)) {}
  ~Note() {
    if (begun_) notes().end();
  }
  Note(const Note&) = delete;
  Note& operator=(const Note&) = delete;

 private:
  static const Notes& notes() noexcept {
    static const Notes found;
    return found;
  }
  const bool begun_;
};

// HIP's function, found once: finding it takes the loader's lock.
class Next {
 public:
  explicit constexpr Next(const char* name) noexcept : name_(name) {}
  Call get() noexcept {
    // relaxed: a pointer to code that was loaded before
    Call call = call_.load(std::memory_order_relaxed);
    if (call == nullptr) {
      call = reinterpret_cast<Call>(hip::of_hip(name_));
      call_.store(call, std::memory_order_relaxed);
    }
    return call;
  }

 private:
  const char* const name_;
  std::atomic<Call> call_{nullptr};
};

// `word`: where the stream is. `unnamed`: the stream that 0 stands for.
int pass(Next& next, size_t word, HipStream unnamed,
         const std::array<Word, hip::kMostWords>& w) noexcept(false) {
  const Call call = next.get();
  if (call == nullptr) return hip::kNotInitialised;
  const Word stream = word == kDefault ? 0 : w[word];
  const Note note(stream == 0 ? static_cast<Word>(unnamed) : stream);
  return call(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12],
              w[13]);
}

}  // namespace

#define UPTEMPO_CALL(name, symbol, word, unnamed)                                                  \
  extern "C" [[gnu::visibility("default")]] int name(                                              \
      Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k,      \
      Word l, Word m, Word n) __asm__(symbol);                                                     \
  int name(Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j, Word k, \
           Word l, Word m, Word n) {                                                               \
    static constinit Next next(symbol);                                                            \
    return pass(next, word, unnamed, {a, b, c, d, e, f, g, h, i, j, k, l, m, n});                  \
  }
#define UPTEMPO_NULL_STREAM(name, word) UPTEMPO_CALL(name, #name, word, HipStream::null)
#define UPTEMPO_THREADS_STREAM(name, word) UPTEMPO_CALL(name, #name, word, HipStream::per_thread)
UPTEMPO_HIP_CALLS(UPTEMPO_NULL_STREAM)
UPTEMPO_LATER_HIP_CALLS(UPTEMPO_NULL_STREAM)
UPTEMPO_HIP_CALLS_PER_THREAD(UPTEMPO_THREADS_STREAM)
UPTEMPO_LATER_HIP_CALLS_PER_THREAD(UPTEMPO_THREADS_STREAM)
// The two that HIP exports as C++ functions.
UPTEMPO_CALL(hipExtModuleLaunchKernel,
             "_Z24hipExtModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_"
             "P11ihipEvent_tS6_j",
             8, HipStream::null)
UPTEMPO_CALL(hipHccModuleLaunchKernel,
             "_Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_"
             "P11ihipEvent_tS6_",
             8, HipStream::null)
