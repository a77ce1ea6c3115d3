// A timeline's record of its failure, its error sources and its dependents.
#include "engine/completion/timeline/failure_record.hpp"

#include <hsa/hsa.h>

#include <atomic>
#include <string>
#include <vector>

#include "test/engine/double_device.hpp"
#include "test/support/catch.hpp"

using namespace uptempo;
using detail::FailureRecord;

TEST_CASE("a noted failure is kept with its text until it is cleared", "[failure_record]") {
  FailureRecord record;
  CHECK_FALSE(record.noted());
  CHECK(record.error() == HSA_STATUS_SUCCESS);
  record.note(HSA_STATUS_ERROR_EXCEPTION, "an illegal instruction");
  CHECK(record.noted());
  CHECK(record.error() == HSA_STATUS_ERROR_EXCEPTION);
  CHECK(record.failure().status == HSA_STATUS_ERROR_EXCEPTION);
  CHECK(record.failure().text == "an illegal instruction");
  record.clear();
  CHECK_FALSE(record.noted());
  CHECK(record.failure().text.empty());
}

TEST_CASE("a watched source is reported while it holds an error, and notes nothing itself",
          "[failure_record]") {
  FailureRecord record;
  std::atomic<hsa_status_t> source{HSA_STATUS_SUCCESS};
  CHECK_FALSE(record.watches());
  CHECK(record.reported().status == HSA_STATUS_SUCCESS);
  record.watch(&source);
  CHECK(record.watches());
  CHECK(record.reported().status == HSA_STATUS_SUCCESS);
  source = HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  CHECK(record.reported().status == HSA_STATUS_ERROR_OUT_OF_RESOURCES);
  CHECK(record.reported().text == std::string("the owner of the borrowed queue reported an error"));
  CHECK_FALSE(record.noted());
  record.clear();
  CHECK(record.watches());
  record.watch(nullptr);
  CHECK(record.reported().status == HSA_STATUS_SUCCESS);
}

TEST_CASE("a failed copy is reported in place of the watched source", "[failure_record]") {
  FailureRecord record;
  std::atomic<hsa_status_t> source{HSA_STATUS_SUCCESS};
  record.watch(&source);
  record.watch_failed_copy();
  CHECK(record.watches());
  CHECK(record.reported().status == HSA_STATUS_ERROR);
  CHECK(record.reported().text == std::string("the copy engine reported that a copy has failed"));
}

TEST_CASE("each dependent is kept once, with its highest value, and handed out once",
          "[failure_record]") {
  FailureRecord record;
  Timeline& one = Timeline::acquire(13);
  Timeline& other = Timeline::acquire(13);
  record.expect_dependent(one);
  record.expect_dependent(other);
  record.add_dependent({&one, 4});
  record.add_dependent({&other, 1});
  record.add_dependent({&one, 2});
  record.add_dependent({&other, 3});
  const std::vector<FailureRecord::Dependent> dependents = record.take_dependents();
  REQUIRE(dependents.size() == 2);
  CHECK(dependents[0].timeline == &one);
  CHECK(dependents[0].value == 4);
  CHECK(dependents[1].timeline == &other);
  CHECK(dependents[1].value == 3);
  CHECK(record.take_dependents().empty());
  record.expect_dependent(one);
  record.add_dependent({&one, 5});
  record.clear();
  CHECK(record.take_dependents().empty());
  one.release();
  other.release();
}

TEST_CASE("a failure that is passed on names the cause, with one prefix however long the chain",
          "[failure_record]") {
  const std::string once = FailureRecord::passed_on("a memory fault");
  CHECK(once == "a queue that it waits for has failed: a memory fault");
  CHECK(FailureRecord::passed_on(once) == once);
}

TEST_CASE("the advice for a failed GPU is not to create a new queue", "[failure_record]") {
  CHECK(remedy({.status = HSA_STATUS_ERROR, .text = {}}) == "create a new queue");
  CHECK(remedy({.status = Session::MemoryFault::kStatus, .text = {}}) ==
        "correct the access; no more work of this Runtime runs on that GPU");
  CHECK(remedy({.status = Session::MemoryFault::kLost, .text = {}}) ==
        "continue in a new process: no more work of this one runs on that GPU");
}
