// The ranks of this run. Wraps the few functions of MPI that the sort needs.
//
// Open MPI moves data only inside its calls. Each call here therefore starts an operation and
// returns; done() makes progress and tells whether the operation is complete. wait() calls done()
// until it is, and the caller's idle() between two calls.
//
// Errors: std::runtime_error with the name of the function and MPI's text.
// Thread safety: the thread that constructed it.
// Lifetime: one per process. Buffers of an operation must live until done() has returned true.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace uptempo::sample_sort {

// A rank's work while it waits.
enum class Idle : uint8_t {
  poll,   // asks again at once: lowest latency, and a core for each rank
  sleep,  // sleeps for 50 us: the virtual GPU of each rank needs the core
};

class Communicator {
 public:
  // Initialises MPI. Throws std::runtime_error.
  explicit Communicator(Idle idle);
  // Finalises MPI, unless an exception is propagating: MPI would wait for ranks that may never
  // come.
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  uint32_t rank() const noexcept { return rank_; }
  uint32_t size() const noexcept { return size_; }
  uint32_t rank_on_host() const noexcept { return rank_on_host_; }
  uint32_t hosts() const noexcept { return hosts_; }
  const std::string& host() const noexcept { return host_; }
  std::string library() const;  // for example "Open MPI v4.1.4"

  // Every rank sends counts[r] keys, which begin at displacements[r], to rank r.
  MPI_Request start_exchange(std::span<const uint32_t> keys, std::span<const int> counts,
                             std::span<const int> displacements, std::span<uint32_t> received,
                             std::span<const int> received_counts,
                             std::span<const int> received_displacements);
  // Every rank sends one number to every rank.
  MPI_Request start_exchange(std::span<const int> numbers, std::span<int> received);
  // Makes progress. Returns true if the operation is complete.
  bool done(MPI_Request& request);
  // Makes progress for messages whose operation is already complete here.
  void progress();
  void idle() const;

  void barrier();
  // Results for all ranks.
  std::vector<uint64_t> sums(std::vector<uint64_t> values);
  // The bytes of all ranks, one after another in rank order. Each rank may give another number.
  std::vector<std::byte> gather(std::span<const std::byte> bytes);
  template <class T>
  std::vector<T> gather_all(std::span<const T> values) {
    const std::vector<std::byte> bytes = gather(std::as_bytes(values));
    std::vector<T> all(bytes.size() / sizeof(T));
    if (!all.empty()) __builtin_memcpy(all.data(), bytes.data(), bytes.size());
    return all;
  }

  // Ends all ranks at once, with exit code 1, after one sentence on stderr that names this rank and
  // its host.
  [[noreturn]] void fail(const char* reason) const;

 private:
  void wait(MPI_Request request);

  Idle idle_;
  int exceptions_;
  uint32_t rank_ = 0, size_ = 1, rank_on_host_ = 0, hosts_ = 1;
  std::string host_;
};

}  // namespace uptempo::sample_sort
