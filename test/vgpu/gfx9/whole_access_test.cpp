// A lane's aligned 8 and 16 bytes move whole: a thread of the host that accesses the same memory
// never sees a part of a store, and a lane never loads a part of the host's store. Hardware
// performs them so, and programs rely on it (device/whole_access.hpp).
//
// The host's own accesses are locked CMPXCHG16B, which are whole on every x86-64 processor with
// that instruction (Intel SDM, volume 2A).
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "device/whole_access.hpp"
#include "gfx9/vector/entry.hpp"
#include "test/support/catch.hpp"
#include "test/vgpu/gfx9/memory_fragment.hpp"

namespace uptempo::vgpu::gfx9::test {
namespace {

// Values of equal dwords: {i, i} and {i, i, i, i}.
class HostValues {
 public:
  explicit HostValues(unsigned dwords) : dwords_(dwords) {}

  bool is_torn(std::byte* at) const {
    if (dwords_ == 2) return is_mixed(word(at).load(std::memory_order_relaxed));
    unsigned __int128 value = 0;
    exchange(at, value, value);
    const auto low = static_cast<uint64_t>(value), high = static_cast<uint64_t>(value >> 64);
    return low != high || is_mixed(low);
  }
  void store(std::byte* at, uint32_t i) const {
    const uint64_t half = uint64_t{i} << 32 | i;
    if (dwords_ == 2) return word(at).store(half, std::memory_order_relaxed);
    unsigned __int128 seen = 0;
    while (!exchange(at, seen, static_cast<unsigned __int128>(half) << 64 | half)) {
    }
  }

 private:
  static bool is_mixed(uint64_t half) { return half >> 32 != (half & 0xffffffff); }
  static std::atomic_ref<uint64_t> word(std::byte* at) {
    return std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(at));
  }
  static bool exchange(std::byte* at, unsigned __int128& expected, unsigned __int128 desired) {
    auto low = static_cast<uint64_t>(expected), high = static_cast<uint64_t>(expected >> 64);
    bool equal;
    asm volatile("lock cmpxchg16b (%3)"
                 : "=@ccz"(equal), "+a"(low), "+d"(high)
                 : "r"(at), "b"(static_cast<uint64_t>(desired)),
                   "c"(static_cast<uint64_t>(desired >> 64))
                 : "memory");
    expected = static_cast<unsigned __int128>(high) << 64 | low;
    return equal;
  }

  unsigned dwords_;
};

// A pair of instructions that move v[4:7] or v[4:5]. v[0:1] holds the lane's address, v2 its offset
// in the buffer s[8:11] or in LDS.
struct Form {
  unsigned dwords;
  bool in_lds;
  const char* load;
  const char* store;
};
constexpr Form kForms[] = {
    {4, false, "global_load_dwordx4 v[4:7], v[0:1], off glc",
     "global_store_dwordx4 v[0:1], v[4:7], off"},
    {4, false, "flat_load_dwordx4 v[4:7], v[0:1]", "flat_store_dwordx4 v[0:1], v[4:7]"},
    {4, false, "buffer_load_dwordx4 v[4:7], v2, s[8:11], 0 offen",
     "buffer_store_dwordx4 v[4:7], v2, s[8:11], 0 offen"},
    {4, true, "ds_read_b128 v[4:7], v2", "ds_write_b128 v2, v[4:7]"},
    {2, false, "global_load_dwordx2 v[4:5], v[0:1], off glc",
     "global_store_dwordx2 v[0:1], v[4:5], off"},
    {2, false, "flat_load_dwordx2 v[4:5], v[0:1]", "flat_store_dwordx2 v[0:1], v[4:5]"},
    {2, false, "buffer_load_dwordx2 v[4:5], v2, s[8:11], 0 offen",
     "buffer_store_dwordx2 v[4:5], v2, s[8:11], 0 offen"},
    {2, true, "ds_read_b64 v[4:5], v2", "ds_write_b64 v2, v[4:5]"},
};

constexpr unsigned kRounds = 2000;

std::string repeated(const std::string& body) {
  return "s_movk_i32 s2, " + std::to_string(kRounds) + "\nagain:\n" + body +
         "\ns_sub_u32 s2, s2, 1\ns_cmp_lg_u32 s2, 0\ns_cbranch_scc1 again";
}

// Runs `host(lane's memory)` for all lanes again and again in a thread of its own, meanwhile the
// fragment, which the caller finishes. `step` lanes apart in memory: 1 gives a run, other odd
// numbers scattered lanes.
template <class Host>
void race(Fragment& fragment, const Form& form, const std::string& text, uint64_t exec,
          unsigned step, Host&& host) {
  const unsigned bytes = 4 * form.dwords;
  const Buffer memory = fragment.machine.allocate(kLanes * bytes, true, MemoryKind::fine_grained);
  Wave& wave = fragment.prepare(text, kLanes * bytes);
  std::byte* const place = form.in_lds ? wave.lds : memory.bytes.data();
  std::fill_n(place, kLanes * bytes, std::byte{0});
  wave.set_exec(exec);
  wave.set_pair(8, memory.address);
  wave.scalar[10] = static_cast<uint32_t>(memory.bytes.size());
  each_lane([&](unsigned lane) {
    const unsigned offset = lane * step % kLanes * bytes;
    set_address(wave, 0, lane, memory.address + offset);
    wave.vgpr[2].lane[lane] = offset;
  });
  std::atomic<bool> runs{false}, ends{false};
  std::thread thread([&] {
    while (!ends.load()) {
      for (unsigned lane = 0; lane < kLanes; ++lane) host(place + lane * bytes);
      runs.store(true);
    }
  });
  while (!runs.load()) std::this_thread::yield();
  fragment.run();
  ends.store(true);
  thread.join();
}

void check_all_forms(MemoryPolicy policy) {
  for (const Form& form : kForms) {
    const HostValues values(form.dwords);
    for (const uint64_t exec : {~uint64_t{0}, kStripes}) {
      for (const unsigned step : {1u, 7u}) {
        CAPTURE(form.load, exec, step);
        Fragment stores(Target::gfx90a, policy);
        unsigned torn = 0;
        race(
            stores, form,
            repeated("v_add_u32 v4, 1, v4\nv_mov_b32 v5, v4\nv_mov_b32 v6, v4\nv_mov_b32 v7, v4\n" +
                     std::string(form.store)),
            exec, step, [&](std::byte* at) { torn += values.is_torn(at); });
        (void)stores.finish();
        CHECK(torn == 0);

        Fragment loads(Target::gfx90a, policy);
        std::string differences;  // in v12
        for (unsigned dword = 1; dword < form.dwords; ++dword)
          differences +=
              "\nv_xor_b32 v8, v4, v" + std::to_string(4 + dword) + "\nv_or_b32 v12, v12, v8";
        uint32_t i = 0;
        race(loads, form, repeated(form.load + differences), exec, step,
             [&](std::byte* at) { values.store(at, ++i); });
        const Wave& wave = loads.finish();
        each_lane([&](unsigned lane) {
          CAPTURE(lane);
          CHECK(wave.vgpr[12].lane[lane] == 0);
        });
      }
    }
  }
}

}  // namespace

TEST_CASE("a lane's aligned 8 and 16 bytes are one access, on each SIMD target") {
  const vector::Simd best = vector::simd_in_use();
  for (const vector::Simd simd :
       {vector::Simd::avx512, vector::Simd::avx2, vector::Simd::baseline}) {
    if (!vector::use_simd(simd)) continue;
    CAPTURE(static_cast<int>(simd));
    check_all_forms(MemoryPolicy::direct);
  }
  vector::use_simd(best);
}

TEST_CASE("a lane's aligned 8 and 16 bytes are one access of an observed and of a cached device") {
  check_all_forms(MemoryPolicy::observed);
  check_all_forms(MemoryPolicy::cached);
}

TEST_CASE("without AVX, 16 bytes are one access by a locked instruction") {
  alignas(16) std::byte memory[16] = {};
  const HostValues values(4);
  std::atomic<bool> ends{false};
  unsigned torn = 0;
  std::thread thread([&] {
    for (uint32_t i = 1; !ends.load(); ++i) whole::store_locked(memory, Quad{i, i, i, i});
  });
  for (unsigned round = 0; round < 100'000; ++round) {
    const Quad value = whole::load_locked(memory);
    torn += value[0] != value[1] || value[0] != value[2] || value[0] != value[3];
    torn += values.is_torn(memory);
  }
  ends.store(true);
  thread.join();
  CHECK(torn == 0);
  // At other addresses nothing is promised but the value.
  std::byte odd[32] = {};
  for (unsigned at = 0; at < 16; ++at) {
    whole::store_locked(odd + at, Quad{at, 1, 2, 3});
    const Quad value = whole::load_locked(odd + at);
    CHECK((value[0] == at && value[1] == 1 && value[2] == 2 && value[3] == 3));
  }
}

}  // namespace uptempo::vgpu::gfx9::test
