// The memory checker: memory that is freed in use or twice, the quarantine's bytes, and which
// findings are repetitions.
#include <optional>
#include <string>

#include "checked_memory.hpp"
#include "test/support/catch.hpp"
#include "test/support/text.hpp"

namespace uptempo::vgpu::memory_check {

TEST_CASE("memory that a running dispatch uses must not be freed", "[memory_check]") {
  Checked checked;
  for (const uint64_t page : {0, 16, 32, 48}) checked.allocate(kBlock + page * 4096, 64);
  // The second argument points into an allocation, the third beyond one, the fourth at none.
  const uint64_t dispatch =
      checked.checker.begin(kKernel, {{7, 0, Use::pointer},
                                      {kBlock + 60, 8, Use::pointer},
                                      {kBlock + 16 * 4096 + 64, 16, Use::pointer},
                                      {kBlock + 40 * 4096, 24, Use::pointer}});
  checked.checker.find(kBlock + 32 * 4096)->last_user = dispatch;
  checked.checker.freed(kBlock, 2);              // held in an argument
  checked.checker.freed(kBlock + 16 * 4096, 3);  // not used
  checked.checker.freed(kBlock + 32 * 4096, 4);  // accessed
  REQUIRE(checked.findings.size() == 2);
  for (const Finding& finding : checked.findings) CHECK(finding.what == Class::freed_in_use);
  CHECK(checked.findings[0].buffer->begin == kBlock);
  CHECK(checked.findings[0].use == Use::pointer);
  CHECK(checked.findings[0].argument_offset == 8);
  CHECK(checked.findings[1].buffer->begin == kBlock + 32 * 4096);
  CHECK(checked.findings[1].use == Use::accessed);
  checked.checker.find(kBlock + 48 * 4096)->last_user = dispatch;
  checked.checker.end(dispatch);
  checked.checker.freed(kBlock + 48 * 4096, 5);
  CHECK(checked.findings.size() == 2);
}

TEST_CASE("a running dispatch may have memory freed that was allocated for it", "[memory_check]") {
  Checked checked;
  checked.allocate(kBlock, 64);
  const uint64_t dispatch = checked.checker.begin(kKernel, {});
  checked.allocate(kBlock + 16 * 4096, 64);
  for (const GpuAddress begin : {kBlock, kBlock + 16 * 4096})
    checked.checker.find(begin)->last_user = dispatch;
  checked.checker.freed(kBlock + 16 * 4096, 2);
  CHECK(checked.findings.empty());
  // It is freed memory for its later accesses.
  checked.access(kBlock + 16 * 4096, 4, false, 1);
  REQUIRE(checked.findings.size() == 1);
  CHECK(checked.findings[0].what == Class::use_after_free);
  checked.checker.freed(kBlock, 3);
  REQUIRE(checked.findings.size() == 2);
  CHECK(checked.findings[1].what == Class::freed_in_use);
}

TEST_CASE("a guess is said to be one, and counts only without better knowledge", "[memory_check]") {
  Checked checked;
  for (const uint64_t page : {0, 16, 32}) checked.allocate(kBlock + page * 4096, 64);
  checked.checker.begin(kKernel, {{kBlock, 0, Use::unknown},
                                  {kBlock, 16, Use::pointer},
                                  {kBlock, 24, Use::by_value},
                                  {kBlock + 16 * 4096, 32, Use::by_value},
                                  {kBlock + 32 * 4096, 40, Use::unknown}});
  for (const uint64_t page : {0, 16, 32})
    checked.checker.freed(kBlock + page * 4096, static_cast<HostStackId>(page + 1));
  REQUIRE(checked.findings.size() == 3);
  CHECK(checked.findings[0].use == Use::pointer);
  CHECK(checked.findings[0].argument_offset == 16);
  const auto text = [&](size_t finding) { return to_sentence(checked.findings[finding], {}); };
  const auto line = [&](size_t finding) {
    return to_json(checked.findings[finding], "gfx90a", {});
  };
  using uptempo::test::contains;
  CHECK(contains(text(0), "the argument at byte 16 of the kernargs points to the memory"));
  CHECK(contains(line(0), R"("use":"argument","argument_offset":16)"));
  CHECK(contains(text(1), "a guess: the word at byte 32 of the kernargs"));
  CHECK(contains(text(1), "in an argument by value"));
  CHECK(contains(text(2), "a guess: the word at byte 40 of the kernargs"));
  CHECK(contains(text(2), "no metadata"));
  CHECK(contains(line(2), R"("use":"guessed-argument","argument_offset":40)"));
}

TEST_CASE("a running dispatch does not use what follows in the memory of its arguments",
          "[memory_check]") {
  Checked checked;
  checked.allocate(kBlock, 64);
  checked.checker.begin(kKernel, {{kBlock, 0, Use::pointer}});
  checked.checker.freed(kBlock, 2);
  REQUIRE(checked.findings.size() == 1);
  // The records of forgotten allocations are used again.
  checked.checker.release_all();
  checked.allocate(kBlock, 64);
  checked.checker.freed(kBlock, 3);
  checked.allocate(kBlock + 0x10000, 64);
  checked.checker.freed(kBlock + 0x10000, 3);
  CHECK(checked.findings.size() == 1);
}

TEST_CASE("the quarantine's bytes are those of the memory in it", "[memory_check]") {
  Checked checked;
  constexpr uint64_t kHalf = Checker::kQuarantineBytes / 2;
  // ROCr returns memory that is in quarantine when it is shut down, and hands it out again.
  for (int i = 0; i < 4; ++i) {
    checked.allocate(kBlock, kHalf);
    CHECK(checked.checker.freed(kBlock, 1).release.empty());
  }
  checked.allocate(kBlock, kHalf);
  const GpuAddress other = kBlock + 0x4000000;
  checked.allocate(other, kHalf - 2 * 4096);
  CHECK(checked.checker.freed(other, 1).release.empty());
  CHECK(checked.checker.release_all().size() == 1);
}

TEST_CASE("a different double free of an address is no repetition", "[memory_check]") {
  Checked checked;
  const auto free_twice = [&](HostStackId allocated, HostStackId freed, HostStackId again) {
    checked.allocate(kBlock, 1000, allocated);
    checked.checker.freed(kBlock, freed);
    checked.checker.freed(kBlock, again);
    checked.checker.release_all();
  };
  free_twice(1, 2, 3);
  free_twice(1, 2, 3);  // the same calls, such as in a loop
  CHECK(checked.findings.size() == 1);
  CHECK(checked.checker.repeated() == 1);
  free_twice(1, 2, 4);
  free_twice(1, 5, 4);
  free_twice(6, 5, 4);
  CHECK(checked.findings.size() == 4);
  // Without a stack, the allocation decides.
  free_twice(1, 2, 0);
  checked.checker.freed(kBlock, 0);
  free_twice(1, 2, 0);
  CHECK(checked.findings.size() == 6);
  CHECK(checked.checker.repeated() == 2);
}

TEST_CASE("a copy beyond another allocation at the same address is no repetition",
          "[memory_check]") {
  Checked checked;
  for (int i = 0; i < 2; ++i) {
    checked.allocate(kBlock, 1000);
    for (int k = 0; k < 2; ++k)
      checked.checker.copied({.is_copy = true, .name = "copy"}, {}, {kBlock, 1024});
    checked.checker.freed(kBlock, 1);
    checked.checker.release_all();
  }
  CHECK(checked.findings.size() == 2);
  CHECK(checked.checker.repeated() == 2);
}

bool by_program(HostStackId /*stack*/) { return true; }

TEST_CASE("memory that HIP keeps must not be used any more", "[memory_check]") {
  using Result = Checker::HipResult;
  Checked checked;
  Checker& checker = checked.checker;
  checked.allocate(kBlock, 1000, 2);
  const auto judged = [&] { return check(*checker.find(kBlock), kBlock, 4, false); };
  const auto before = checker.before_hip_free(kBlock);
  // An address inside it, and memory of HIP's own, such as that of its pools.
  checker.hip_freed(kBlock + 8, checker.before_hip_free(kBlock + 8), Result::freed, 3, by_program);
  checker.hip_freed(kBlock, before, Result::freed, 3, [](HostStackId stack) { return stack != 2; });
  CHECK(judged() == Verdict::fine);

  checker.hip_freed(kBlock, before, Result::freed, 4, by_program);
  REQUIRE(judged() == Verdict::freed);
  checker.found({.access = Access::write, .address = kBlock, .bytes = 4}, Verdict::freed);
  REQUIRE(checked.findings.size() == 1);
  CHECK(checked.findings[0].what == Class::use_after_free);
  CHECK(checked.findings[0].buffer->freed == 4);
  CHECK_FALSE(checker.is_held(kBlock));             // to ROCr and HIP
  CHECK(checker.find_request(kBlock).has_value());  // it is as before

  // HIP returns it during a later launch, which is no second free.
  CHECK(checker.freed(kBlock, 5).what == Checker::Freed::What::held);
  CHECK(checked.findings.size() == 1);
  CHECK(judged() == Verdict::freed);
  checker.hip_freed(kBlock, checker.before_hip_free(kBlock), Result::unknown_pointer, 6,
                    by_program);
  REQUIRE(checked.findings.size() == 2);
  CHECK(checked.findings[1].what == Class::double_free);
  CHECK(checked.findings[1].buffer->freed == 4);
}

TEST_CASE("memory that HIP keeps may have been freed in use", "[memory_check]") {
  Checked checked;
  checked.allocate(kBlock, 64, 2);
  checked.checker.begin(kKernel, {{kBlock, 0, Use::pointer}});
  checked.checker.hip_freed(kBlock, checked.checker.before_hip_free(kBlock),
                            Checker::HipResult::freed, 3, by_program);
  REQUIRE(checked.findings.size() == 1);
  CHECK(checked.findings[0].what == Class::freed_in_use);
  CHECK(checked.findings[0].buffer->freed == 3);
  checked.checker.freed(kBlock, 4);
  CHECK(checked.findings.size() == 1);
}

TEST_CASE("memory that HIP keeps may be a pool's if nothing tells who allocated it",
          "[memory_check]") {
  Checked checked;
  checked.allocate(kBlock, 1000, 0);
  checked.checker.hip_freed(kBlock, checked.checker.before_hip_free(kBlock),
                            Checker::HipResult::freed, 3, by_program);
  CHECK(check(*checked.checker.find(kBlock), kBlock, 4, false) == Verdict::fine);
  checked.checker.report_leaks([](HostStackId) { return std::optional<std::string>("place"); });
  CHECK(checked.findings.empty());
}

TEST_CASE("HIP refuses memory that is freed again, and that is found", "[memory_check]") {
  using Result = Checker::HipResult;
  Checked checked;
  const auto free_with_hip = [&](bool hip_frees, Result result, HostStackId stack) {
    const auto before = checked.checker.before_hip_free(kBlock);
    if (hip_frees) checked.checker.freed(kBlock, stack);
    checked.checker.hip_freed(kBlock, before, result, stack, by_program);
  };
  free_with_hip(false, Result::unknown_pointer, 1);  // no allocation
  checked.allocate(kBlock, 1000, 2);
  free_with_hip(false, Result::unknown_pointer, 3);  // one of another kind
  free_with_hip(true, Result::freed, 4);
  free_with_hip(false, Result::other, 5);  // HIP is shut down
  CHECK(checked.findings.empty());
  free_with_hip(false, Result::unknown_pointer, 6);
  REQUIRE(checked.findings.size() == 1);
  CHECK(checked.findings[0].what == Class::double_free);
  CHECK(checked.findings[0].buffer->allocated == 2);
  CHECK(checked.findings[0].buffer->freed == 4);
  CHECK(checked.findings[0].freed_again == 6);

  // An address inside it.
  const auto inside = checked.checker.before_hip_free(kBlock + 8);
  checked.checker.hip_freed(kBlock + 8, inside, Result::unknown_pointer, 7, by_program);
  REQUIRE(checked.findings.size() == 2);
  CHECK(checked.findings[1].address == kBlock + 8);
  CHECK(checked.findings[1].buffer->begin == kBlock);
  checked.findings.pop_back();

  // Memory that HIP keeps.
  checked.checker.release_all();
  checked.allocate(kBlock, 1000, 12);
  free_with_hip(false, Result::freed, 14);
  CHECK(checked.findings.size() == 1);
  free_with_hip(false, Result::unknown_pointer, 16);
  REQUIRE(checked.findings.size() == 2);
  CHECK(checked.findings[1].buffer->freed == 14);

  // Two threads free at once.
  checked.allocate(kBlock, 1000, 22);
  const auto first = checked.checker.before_hip_free(kBlock);
  const auto second = checked.checker.before_hip_free(kBlock);
  checked.checker.freed(kBlock, 24);
  checked.checker.hip_freed(kBlock, second, Result::unknown_pointer, 26, by_program);
  checked.checker.hip_freed(kBlock, first, Result::freed, 24, by_program);
  REQUIRE(checked.findings.size() == 3);
  CHECK(checked.findings[2].buffer->freed == 24);
}

TEST_CASE("an allocation at the address while HIP frees the former one is no part of it",
          "[memory_check]") {
  using Result = Checker::HipResult;
  Checked checked;
  checked.allocate(kBlock, 1000, 2);
  const auto before = checked.checker.before_hip_free(kBlock);
  checked.checker.freed(kBlock, 3);
  checked.checker.release_all();
  checked.allocate(kBlock, 500, 4);  // by another thread
  checked.checker.hip_freed(kBlock, before, Result::freed, 3, by_program);
  // It can leak, and HIP's refusal concerns the former one.
  checked.checker.report_leaks([](HostStackId) { return std::optional<std::string>("place"); });
  REQUIRE(checked.findings.size() == 1);
  CHECK(checked.findings[0].what == Class::leak);
  CHECK(checked.findings[0].leaked_bytes == 500);
  checked.checker.hip_freed(kBlock, before, Result::unknown_pointer, 5, by_program);
  CHECK(checked.findings.size() == 1);
}

TEST_CASE("a reset of the device frees what was allocated before", "[memory_check]") {
  Checked checked;
  checked.allocate(kBlock, 1000);
  checked.checker.hip_reset(2);
  checked.allocate(kBlock + 16 * 4096, 500);
  const auto before = checked.checker.before_hip_free(kBlock);
  checked.checker.hip_freed(kBlock, before, Checker::HipResult::unknown_pointer, 3, by_program);
  REQUIRE(checked.findings.size() == 1);
  CHECK(checked.findings[0].what == Class::double_free);
  checked.checker.report_leaks([](HostStackId) { return std::optional<std::string>("place"); });
  REQUIRE(checked.findings.size() == 2);
  CHECK(checked.findings[1].what == Class::leak);
  CHECK(checked.findings[1].leaked_bytes == 500);
}

}  // namespace uptempo::vgpu::memory_check
