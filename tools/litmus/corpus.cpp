#include "tools/litmus/corpus.hpp"

#include <span>

#include <uptempo/aql/text.hpp>

namespace uptempo::litmus {
namespace {

using aql::Barrier;
using aql::FenceScope;
using aql::HeaderFlags;

constexpr auto kNone = FenceScope::none;
constexpr auto kAgent = FenceScope::agent;
constexpr auto kSystem = FenceScope::system;

// of a barrier packet: order only, no fences
constexpr HeaderFlags kWait{Barrier::off, kNone, kNone};

struct Choice {
  CellKind memory = CellKind::fine_grained;
  FenceScope release = kNone;
  FenceScope acquire = kNone;
};

// Loads `cell` into the caches.
StepId warm(Test& test, uint32_t queue, CellId cell) {
  return test.copy(queue, cell, test.cell("unused", CellKind::fine_grained),
                   {Barrier::on, kSystem, kNone});
}
CellId result(Test& test, const char* name = "r") {
  return test.cell(name, CellKind::fine_grained);
}

// The last step of most shapes: a kernel reads `cell`, and the host loads the value that it saw.
void observe(Test& test, uint32_t queue, CellId cell, HeaderFlags reader) {
  const CellId r = result(test);
  test.host_wait(test.copy(queue, cell, r, reader));
  test.host_load(r);
}
// The host loads `cell` directly, or after a copy if it is device-local.
void observe_by_host(Test& test, CellId cell, StepId last) {
  if (test.cells[cell].kind != CellKind::device_local) {
    test.host_wait(last);
    test.host_load(cell);
    return;
  }
  const CellId r = result(test);
  test.host_wait(test.engine_copy(cell, r, {last}));
  test.host_load(r);
}

void message_in_one_queue(Test& test, const Choice& choice) {
  const CellId x = test.cell("x", choice.memory);
  warm(test, 0, x);
  test.store(0, x, 1, {Barrier::on, kNone, choice.release});
  observe(test, 0, x, {Barrier::on, choice.acquire, kSystem});
}

void message_without_barrier_bit(Test& test, const Choice& choice) {
  const CellId x = test.cell("x", choice.memory);
  warm(test, 0, x);
  test.store(0, x, 1, {Barrier::on, kNone, kSystem});
  observe(test, 0, x, {Barrier::off, kSystem, kSystem});
}

void message_to_another_queue(Test& test, const Choice& choice) {
  const CellId x = test.cell("x", choice.memory);
  warm(test, 0, x);
  const StepId write = test.store(0, x, 1, {Barrier::on, kNone, choice.release});
  test.barrier(1, {write}, kWait);
  observe(test, 1, x, {Barrier::on, choice.acquire, kSystem});
}

void message_without_dependency(Test& test, const Choice& choice) {
  const CellId x = test.cell("x", choice.memory);
  const StepId before = warm(test, 0, x);
  test.host_wait(before);
  test.store(0, x, 1, {Barrier::on, kNone, kSystem});
  observe(test, 1, x, {Barrier::on, kSystem, kSystem});
}

void acquire_in_another_queue(Test& test, const Choice& choice) {
  const CellId x = test.cell("x", choice.memory);
  warm(test, 0, x);
  const StepId write = test.store(0, x, 1, {Barrier::on, kNone, choice.release});
  const StepId there = test.barrier(1, {write}, {Barrier::off, choice.acquire, kNone});
  test.barrier(0, {there}, kWait);
  observe(test, 0, x, {Barrier::on, kNone, kSystem});
}

void release_in_another_queue(Test& test, const Choice& choice) {
  const CellId x = test.cell("x", choice.memory);
  warm(test, 0, x);
  const StepId write = test.store(0, x, 1, {Barrier::on, kNone, kNone});
  const StepId there = test.barrier(1, {write}, {Barrier::off, kNone, choice.release});
  test.barrier(0, {there}, kWait);
  observe(test, 0, x, {Barrier::on, choice.acquire, kSystem});
}

void fences_in_the_middle(Test& test, const Choice& choice) {
  const CellId x = test.cell("x", choice.memory), y = test.cell("y", choice.memory);
  warm(test, 0, x);
  test.store(0, x, 1, {Barrier::on, kNone, kNone});
  test.store(0, y, 1, {Barrier::on, choice.acquire, choice.release});
  observe(test, 0, x, {Barrier::on, kNone, kSystem});
}

void acquire_in_the_middle(Test& test, const Choice& choice) {
  const CellId x = test.cell("x", choice.memory), y = test.cell("y", choice.memory);
  warm(test, 0, x);
  test.store(0, x, 1, {Barrier::on, kNone, choice.release});
  test.store(0, y, 1, {Barrier::on, choice.acquire, kNone});
  observe(test, 0, x, {Barrier::on, kNone, kSystem});
}

void kernel_to_host(Test& test, const Choice& choice) {
  const CellId x = test.cell("x", choice.memory);
  test.host_wait(test.store(0, x, 1, {Barrier::on, kSystem, choice.release}));
  test.host_load(x);
}

void host_to_kernel(Test& test, const Choice& choice) {
  const CellId x = test.cell("x", choice.memory);
  test.host_wait(warm(test, 0, x));
  test.host_store(x, 1);
  observe(test, 0, x, {Barrier::on, choice.acquire, kSystem});
}

void kernel_to_engine(Test& test, const Choice& choice) {
  const CellId x = test.cell("x", choice.memory), r = result(test);
  const StepId write = test.store(0, x, 1, {Barrier::on, kSystem, choice.release});
  test.host_wait(test.engine_copy(x, r, {write}));
  test.host_load(r);
}

void engine_to_kernel(Test& test, const Choice& choice) {
  const CellId x = test.cell("x", choice.memory),
               source = test.cell("s", CellKind::fine_grained, 1);
  const StepId before = warm(test, 0, x);
  const StepId upload = test.engine_copy(source, x, {before});
  test.barrier(0, {upload}, kWait);
  observe(test, 0, x, {Barrier::on, choice.acquire, kSystem});
}

void round_trip(Test& test, const Choice& choice) {
  const CellId h = test.cell("h", CellKind::coarse_grained), x = test.cell("x", choice.memory),
               r = result(test);
  test.host_wait(warm(test, 0, x));
  test.host_store(h, 1);
  const StepId upload = test.engine_copy(h, x, {});
  test.barrier(0, {upload}, kWait);
  const StepId add = test.add(0, x, 1, {Barrier::on, choice.acquire, choice.release});
  test.host_wait(test.engine_copy(x, r, {add}));
  test.host_load(r);
}

void store_buffering(Test& test, const Choice& choice, bool ordered) {
  const CellId x = test.cell("x", choice.memory), y = test.cell("y", choice.memory);
  const CellId r0 = result(test, "r0"), r1 = result(test, "r1");
  warm(test, 0, x);
  test.host_wait(warm(test, 0, y));
  const StepId write_x = test.store(0, x, 1, {Barrier::on, kNone, choice.release});
  const StepId write_y = test.store(1, y, 1, {Barrier::on, kNone, choice.release});
  if (ordered) {
    test.barrier(0, {write_y}, kWait);
    test.barrier(1, {write_x}, kWait);
  }
  const StepId read_y = test.copy(0, y, r0, {Barrier::on, choice.acquire, kSystem});
  const StepId read_x = test.copy(1, x, r1, {Barrier::on, choice.acquire, kSystem});
  test.host_wait(read_y);
  test.host_wait(read_x);
  test.host_load(r0);
  test.host_load(r1);
}

void download(Test& test, const Choice& choice, bool ordered) {
  const CellId x = test.cell("x", choice.memory), r = result(test);
  const StepId write = test.store(0, x, 1, {Barrier::on, kSystem, kSystem});
  const StepId copy = test.engine_copy(x, r, {write});
  if (ordered) test.barrier(0, {copy}, kWait);
  test.store(0, x, 2, {Barrier::on, choice.acquire, choice.release});
  test.host_wait(copy);
  test.host_load(r);
}

void two_writers(Test& test, const Choice& choice, Barrier barrier) {
  const CellId x = test.cell("x", choice.memory);
  warm(test, 0, x);
  test.store(0, x, 1, {Barrier::on, kNone, choice.release});
  const StepId last = test.store(0, x, 2, {barrier, choice.acquire, kSystem});
  observe_by_host(test, x, last);
}

void either_of_two(Test& test, const Choice& choice) {
  const CellId x = test.cell("x", choice.memory), y = test.cell("y", choice.memory);
  const CellId r0 = result(test, "r0"), r1 = result(test, "r1");
  warm(test, 0, x);
  test.host_wait(warm(test, 0, y));
  const StepId write_x = test.store(0, x, 1, {Barrier::on, kNone, kSystem});
  const StepId write_y = test.store(0, y, 1, {Barrier::on, kNone, kSystem});
  test.barrier_or(1, {write_x, write_y}, kWait);
  const StepId read_x = test.copy(1, x, r0, {Barrier::on, kSystem, kSystem});
  const StepId read_y = test.copy(1, y, r1, {Barrier::on, kSystem, kSystem});
  test.host_wait(write_y);
  test.host_wait(read_x);
  test.host_wait(read_y);
  test.host_load(r0);
  test.host_load(r1);
}

void kernarg_reuse(Test& test, const Choice& choice) {
  const CellId x = test.cell("x", CellKind::fine_grained);
  test.host_wait(test.store_with_shared_block(0, 0, x, 1, {Barrier::on, kSystem, kSystem}));
  test.host_load(x);
  test.host_wait(test.store_with_shared_block(0, 0, x, 2, {Barrier::on, choice.acquire, kSystem}));
  test.host_load(x);
}

void kernarg_reuse_without_wait(Test& test, const Choice&) {
  const CellId x = test.cell("x", CellKind::fine_grained),
               y = test.cell("y", CellKind::fine_grained);
  test.store_with_shared_block(0, 0, x, 1, {Barrier::on, kSystem, kSystem});
  test.host_wait(test.store_with_shared_block(0, 0, y, 2, {Barrier::on, kSystem, kSystem}));
  test.host_load(x);
  test.host_load(y);
}

constexpr CellKind kAll[] = {CellKind::device_local, CellKind::coarse_grained,
                             CellKind::fine_grained};
constexpr CellKind kHost[] = {CellKind::coarse_grained, CellKind::fine_grained};
constexpr CellKind kFine[] = {CellKind::fine_grained};
constexpr FenceScope kScopes[] = {kNone, kAgent, kSystem};

struct Shape {
  const char* name;
  std::span<const CellKind> memory;
  bool chooses_release, chooses_acquire;
  void (*build)(Test&, const Choice&);
};

constexpr Shape kShapes[] = {
    {"message-in-one-queue", kAll, true, true, message_in_one_queue},
    {"message-without-barrier-bit", kAll, false, false, message_without_barrier_bit},
    {"message-to-another-queue", kAll, true, true, message_to_another_queue},
    {"message-without-dependency", kAll, false, false, message_without_dependency},
    {"acquire-in-another-queue", kAll, true, true, acquire_in_another_queue},
    {"release-in-another-queue", kAll, true, true, release_in_another_queue},
    {"fences-in-the-middle", kAll, true, true, fences_in_the_middle},
    {"acquire-in-the-middle", kAll, true, true, acquire_in_the_middle},
    {"kernel-to-host", kHost, true, false, kernel_to_host},
    {"host-to-kernel", kHost, false, true, host_to_kernel},
    {"kernel-to-engine", kAll, true, false, kernel_to_engine},
    {"engine-to-kernel", kAll, false, true, engine_to_kernel},
    {"round-trip", kAll, true, true, round_trip},
    {"store-buffering", kAll, true, true,
     [](Test& test, const Choice& choice) { store_buffering(test, choice, true); }},
    {"store-buffering-without-order", kAll, false, false,
     [](Test& test, const Choice& choice) {
       store_buffering(test, {choice.memory, kSystem, kSystem}, false);
     }},
    {"overwritten-after-download", kAll, true, true,
     [](Test& test, const Choice& choice) { download(test, choice, true); }},
    {"overwritten-during-download", kAll, false, false,
     [](Test& test, const Choice& choice) { download(test, choice, false); }},
    {"two-writers", kAll, true, true,
     [](Test& test, const Choice& choice) { two_writers(test, choice, Barrier::on); }},
    {"two-writers-without-barrier-bit", kAll, false, false,
     [](Test& test, const Choice& choice) {
       two_writers(test, {choice.memory, kSystem, kSystem}, Barrier::off);
     }},
    {"either-of-two", kAll, false, false, either_of_two},
    {"kernarg-reuse", kFine, false, true, kernarg_reuse},
    {"kernarg-reuse-without-wait", kFine, false, false, kernarg_reuse_without_wait},
};

std::span<const FenceScope> scopes(bool choice) {
  return choice ? std::span<const FenceScope>(kScopes)
                : std::span<const FenceScope>(kScopes).first(1);
}

}  // namespace

std::vector<Test> corpus() {
  std::vector<Test> tests;
  for (const Shape& shape : kShapes) {
    for (const CellKind memory : shape.memory) {
      for (const FenceScope release : scopes(shape.chooses_release)) {
        for (const FenceScope acquire : scopes(shape.chooses_acquire)) {
          Test& test = tests.emplace_back();
          test.name = std::string(shape.name) + '/' + name_of(memory);
          if (shape.chooses_release)
            test.name += std::string("/release-").append(aql::scope_name(release));
          if (shape.chooses_acquire)
            test.name += std::string("/acquire-").append(aql::scope_name(acquire));
          shape.build(test, {memory, release, acquire});
        }
      }
    }
  }
  return tests;
}

}  // namespace uptempo::litmus
