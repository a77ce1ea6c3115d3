// Two plugins in one process, each with a copy of the library, share the budget of signals.
#include <dlfcn.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "plugin.hpp"
#include "test/support/catch.hpp"
#include "test/support/text.hpp"

namespace {

using uptempo::test::contains;

class Loaded {
 public:
  explicit Loaded(const char* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) FAIL(dlerror());
    plugin_ = static_cast<const Plugin*>(dlsym(library_, "uptempo_test_plugin"));
    REQUIRE(plugin_ != nullptr);
    CHECK(dlsym(library_, "_ZN7uptempo10signal_useEv") == nullptr);
  }
  ~Loaded() {
    plugin_->give_back();
    dlclose(library_);
  }
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  const Plugin* operator->() const { return plugin_; }
  PluginUse use() const {
    PluginUse use;
    plugin_->use(use);
    return use;
  }
  // The text of the Error; empty: taken.
  std::string take(uint32_t count) {
    std::array<char, 2048> text{};
    return plugin_->take(count, text.data(), text.size()) ? "" : text.data();
  }

 private:
  void* const library_;
  const Plugin* plugin_ = nullptr;
};

}  // namespace

TEST_CASE("copies of the library that look for the budget at once find one", "[plugins]") {
  Loaded one(UPTEMPO_TEST_PLUGIN_ONE), other(UPTEMPO_TEST_PLUGIN_OTHER);
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (const Loaded* plugin : {&one, &other})
    threads.emplace_back([&, plugin] {
      ++ready;
      while (ready != 2) continue;
      (void)plugin->use();
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(one.use().address != other.use().address);
  CHECK(one.use().copies == 2);
  CHECK(other.use().copies == 2);
  one->set_budget(100);
  CHECK(other.use().budget == 100);
}

TEST_CASE("plugins share the budget of signals, and an error says that there are several copies",
          "[plugins]") {
  Loaded one(UPTEMPO_TEST_PLUGIN_ONE), other(UPTEMPO_TEST_PLUGIN_OTHER);
  one->set_budget(10);
  CHECK(one.take(6) == "");
  CHECK(other.use().budget == 10);
  CHECK(other.use().in_use == 6);
  const std::string error = other.take(6);
  CHECK(contains(error,
                 "the budget is used up: 10 interrupt signals of the 2 copies of this library in "
                 "the process are in use, its budget is 10"));
  CHECK(one.use().in_use == 10);
  std::array<char, 8192> text{};
  one->describe(text.data(), text.size());
  CHECK(contains(text.data(), "of a budget of 10 for 2 copies of this library in the process"));
  CHECK(contains(text.data(), "Uptempo: 2 copies, which share nothing but the budget of signals"));
  for (const char* file : {UPTEMPO_TEST_PLUGIN_ONE, UPTEMPO_TEST_PLUGIN_OTHER})
    CHECK(contains(text.data(), std::string(file) + " (" UPTEMPO_TEST_VERSION ")"));
  one->give_back();
  CHECK(other.use().in_use == 4);
  CHECK(other.take(6) == "");
  CHECK(other.use().in_use == 10);
}
