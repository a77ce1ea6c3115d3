#include "communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "splitters.hpp"

namespace uptempo::sample_sort {
namespace {

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw std::runtime_error(
      fmt::format("{}: {}", call, std::string_view(text, static_cast<size_t>(length))));
}

}  // namespace

Communicator::Communicator(Idle idle) : idle_(idle), exceptions_(std::uncaught_exceptions()) {
  int provided = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
  if (provided < MPI_THREAD_FUNNELED)
    throw std::runtime_error("MPI_Init_thread: this MPI does not run in a process with threads");
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  int rank = 0, size = 0;
  check(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  rank_ = static_cast<uint32_t>(rank);
  size_ = static_cast<uint32_t>(size);

  MPI_Comm on_host = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &on_host),
        "MPI_Comm_split_type");
  check(MPI_Comm_rank(on_host, &rank), "MPI_Comm_rank");
  check(MPI_Comm_free(&on_host), "MPI_Comm_free");
  rank_on_host_ = static_cast<uint32_t>(rank);
  hosts_ = static_cast<uint32_t>(sums({rank_on_host_ == 0 ? 1u : 0u}).front());

  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  check(MPI_Get_processor_name(name, &length), "MPI_Get_processor_name");
  host_.assign(name, static_cast<size_t>(length));
}

Communicator::~Communicator() {
  if (std::uncaught_exceptions() == exceptions_) MPI_Finalize();
}

std::string Communicator::library() const {
  char text[MPI_MAX_LIBRARY_VERSION_STRING];
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string_view all(text, static_cast<size_t>(length));
  return std::string(all.substr(0, all.find_first_of(",\n")));
}

MPI_Request Communicator::start_exchange(std::span<const uint32_t> keys,
                                         std::span<const int> counts,
                                         std::span<const int> displacements,
                                         std::span<uint32_t> received,
                                         std::span<const int> received_counts,
                                         std::span<const int> received_displacements) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ialltoallv(keys.data(), counts.data(), displacements.data(), MPI_UINT32_T,
                       received.data(), received_counts.data(), received_displacements.data(),
                       MPI_UINT32_T, MPI_COMM_WORLD, &request),
        "MPI_Ialltoallv");
  return request;
}

MPI_Request Communicator::start_exchange(std::span<const int> numbers, std::span<int> received) {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ialltoall(numbers.data(), 1, MPI_INT, received.data(), 1, MPI_INT, MPI_COMM_WORLD,
                      &request),
        "MPI_Ialltoall");
  return request;
}

bool Communicator::done(MPI_Request& request) {
  int complete = 0;
  check(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), "MPI_Test");
  return complete != 0;
}

void Communicator::progress() {
  int present = 0;
  check(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &present, MPI_STATUS_IGNORE),
        "MPI_Iprobe");
}

void Communicator::idle() const {
  if (idle_ == Idle::sleep) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void Communicator::wait(MPI_Request request) {
  while (!done(request)) idle();
}

void Communicator::barrier() {
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
  wait(request);
}

std::vector<uint64_t> Communicator::sums(std::vector<uint64_t> values) {
  std::vector<uint64_t> result(values.size());
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallreduce(values.data(), result.data(), static_cast<int>(values.size()), MPI_UINT64_T,
                       MPI_SUM, MPI_COMM_WORLD, &request),
        "MPI_Iallreduce");
  wait(request);
  return result;
}

std::vector<std::byte> Communicator::gather(std::span<const std::byte> bytes) {
  std::vector<int> counts(size_);
  const int own = static_cast<int>(bytes.size());
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&own, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD, &request),
        "MPI_Iallgather");
  wait(request);
  const std::vector<int> begins = displacements(counts);
  std::vector<std::byte> all(sum_of(counts));
  check(MPI_Iallgatherv(bytes.data(), own, MPI_BYTE, all.data(), counts.data(), begins.data(),
                        MPI_BYTE, MPI_COMM_WORLD, &request),
        "MPI_Iallgatherv");
  wait(request);
  return all;
}

void Communicator::fail(const char* reason) const {
  std::fprintf(stderr, "sample_sort: rank %u of %u on %s failed: %s\n", rank_, size_, host_.c_str(),
               reason);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

}  // namespace uptempo::sample_sort
