// Names of kernels. The symbols were made by clang 15 from the functions in the comments.
#include <uptempo/program/kernel_names.hpp>

#include <string>
#include <vector>

#include "test/support/catch.hpp"

using namespace uptempo;

namespace {

const std::vector<std::string> kSymbols{
    "axpy",                            // extern "C"
    "_Z5scalePff",                     // scale(float*, float)
    "_Z5scalePjj",                     // scale(unsigned*, unsigned)
    "_ZN7physics4stepEPfPKffj",        // physics::step(float*, const float*, float, unsigned)
    "_Z4fillIjEvPT_S0_",               // template fill<unsigned>
    "_Z4fillIyEvPT_S0_",               // template fill<unsigned long long>
    "_ZN12_GLOBAL__N_16hiddenEPFviE",  // (anonymous namespace)::hidden(void (*)(int))
    "_Z4pickISt4pairIiiEEvT_",         // template pick<std::pair<int, int>>
};

std::vector<size_t> found(std::string_view name) { return kernels_named(name, kSymbols); }

}  // namespace

TEST_CASE("a kernel's C++ name has parameters and no return type", "[kernel_name]") {
  std::vector<std::string> names;
  for (const std::string& symbol : kSymbols) names.push_back(cpp_name(symbol));
  CHECK(names == std::vector<std::string>{
                     "axpy", "scale(float*, float)", "scale(unsigned int*, unsigned int)",
                     "physics::step(float*, float const*, float, unsigned int)",
                     "fill<unsigned int>(unsigned int*, unsigned int)",
                     "fill<unsigned long long>(unsigned long long*, unsigned long long)",
                     "(anonymous namespace)::hidden(void (*)(int))",
                     "pick<std::pair<int, int> >(std::pair<int, int>)"});
  CHECK(cpp_name("_ZN12_GLOBAL__N_16kernelEv.intern.b04fd23c") ==
        "(anonymous namespace)::kernel()");
  CHECK(cpp_name("_Z3foov.static.ab") == "foo()");
  CHECK(cpp_name("i") == "i");  // also the encoding of a type
  CHECK(cpp_name("_Z") == "_Z");
  CHECK(cpp_name("").empty());
}

TEST_CASE("a kernel is found by symbol, by C++ name, and by C++ name without parameters",
          "[kernel_name]") {
  using Indices = std::vector<size_t>;
  for (size_t i = 0; i < kSymbols.size(); ++i) {
    CAPTURE(kSymbols[i]);
    CHECK(found(kSymbols[i]) == Indices{i});
    CHECK(found(cpp_name(kSymbols[i])) == Indices{i});
  }
  CHECK(found("physics::step") == Indices{3});
  CHECK(found("fill<unsigned int>") == Indices{4});
  CHECK(found("(anonymous namespace)::hidden") == Indices{6});
  CHECK(found("pick<std::pair<int, int> >") == Indices{7});
  CHECK(found("scale") == Indices{1, 2});
  CHECK(found("step").empty());
  CHECK(found("").empty());
  CHECK(found("scale(").empty());
}

TEST_CASE("kernels of one name in two files are told apart by symbol only", "[kernel_name]") {
  const std::vector<std::string> symbols{"_Z3foov.static.ab", "_Z3foov.static.cd"};
  CHECK(kernels_named("foo", symbols) == std::vector<size_t>{0, 1});
  CHECK(kernels_named("foo()", symbols) == std::vector<size_t>{0, 1});
  CHECK(kernels_named(symbols[1], symbols) == std::vector<size_t>{1});
}

TEST_CASE("a symbol has precedence over a C++ name", "[kernel_name]") {
  CHECK(kernels_named("scale", std::vector<std::string>{"_Z5scalePff", "scale"}) ==
        std::vector<size_t>{1});
}
