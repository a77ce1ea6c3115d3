// A thread of the library. Private to the engine.
//
// It receives no signals, because the program's handlers must run on its own threads.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <thread>
#include <utility>

namespace uptempo::detail {

// `name`: at most 15 characters. Throws std::system_error.
template <class Body>
std::thread start_library_thread(const char* name, Body&& body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::forward<Body>(body));
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_setname_np(thread.native_handle(), name);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace uptempo::detail
